// For tests only: breaks a world at random, one fault after the other, and mends it.
import { delay } from "@dialout/common";
import { until } from "@dialout/common/testkit";
import type { Random } from "./random";
import type { World } from "./world";

/** What follows a fault until the next one. */
const QUIET_MS = { min: 50, max: 900 };
/** A worker that has lost many links dials again late; replacing it is one more fault. */
const REATTACH_MS = 6_000;

export class Chaos {
  readonly counts = new Map<string, number>();
  private readonly stopping = new AbortController();
  private running: Promise<void> | undefined;

  constructor(private readonly world: World, private readonly random: Random) {}

  start(): void {
    this.running = this.loop();
  }

  /** Mends everything and resolves when the worker is attached. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private readonly faults: Record<string, () => Promise<void>> = {
    "exec leg cut": () => this.linkDown("execLeg", (l) => l.cut()),
    "exec leg reset": async () => this.world.execLeg.reset(),
    "exec leg half-closed": async () => this.world.execLeg.halfClose(this.random.pick(["up", "down"])),
    "exec leg black hole": () => this.linkDown("execLeg", (l) => l.set({ kind: "black-hole" })),
    "exec leg in slices": () => this.linkDown("execLeg", (l) => l.set({ kind: "slice", bytes: this.random.int(1, 300) })),
    "attach leg cut": () => this.linkDown("attachLeg", (l) => l.cut()),
    "attach leg reset": async () => this.world.attachLeg.reset(),
    "attach leg half-closed": async () => this.world.attachLeg.halfClose(this.random.pick(["up", "down"])),
    "attach leg black hole": () => this.linkDown("attachLeg", (l) => l.set({ kind: "black-hole" })),
    "relay killed": async () => {
      await this.world.relay.stop("SIGKILL");
      await delay(this.random.int(0, 500));
      await this.world.startRelay();
    },
    "worker killed and started": async () => {
      await this.world.worker.stop("SIGKILL");
      await delay(this.random.int(0, 500));
      await this.world.startWorker();
    },
    "worker replaced": () => this.world.freshWorker(),
    "relay frozen": () => this.frozen("relay"),
    "worker frozen": () => this.frozen("worker"),
  };

  private async loop(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      const name = this.random.pick(Object.keys(this.faults));
      this.count(name);
      await (this.faults[name] as () => Promise<void>)();
      await this.mended();
      await delay(this.random.int(QUIET_MS.min, QUIET_MS.max), this.stopping.signal);
    }
  }

  private count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  private async linkDown(leg: "execLeg" | "attachLeg", strike: (link: World["execLeg"]) => void): Promise<void> {
    strike(this.world[leg]);
    await delay(this.random.int(50, 2_500), this.stopping.signal);
    this.world[leg].heal();
  }

  private async frozen(who: "relay" | "worker"): Promise<void> {
    this.world[who].signal("SIGSTOP");
    await delay(this.random.int(50, 2_500), this.stopping.signal);
    this.world[who].signal("SIGCONT");
  }

  /** Faults come one at a time: the next waits until a command gets through. */
  private async mended(): Promise<void> {
    const answers = async () => {
      const t = this.world.transport({ graceMs: 1_000, connectMs: 1_000, keepaliveMs: 500 });
      try {
        return (await t.exec("true", { timeout: 5 })).exitCode === 0;
      } catch {
        return false;
      } finally {
        await t.close();
      }
    };
    try {
      await until("a command gets through", answers, REATTACH_MS);
    } catch {
      this.count("worker replaced");
      await this.world.freshWorker();
      await until("a command gets through to a new worker", answers, 60_000);
    }
  }
}
