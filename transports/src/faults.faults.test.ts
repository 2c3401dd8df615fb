// The fault matrix: {fault} x {leg} x {phase}. In every cell the caller must get the whole output, byte for byte, with the exit status, and
// the command must have run once. A fault that ends connections shows as a second delivery, one that only slows them does not.
import { until } from "@dialout/common/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Phased } from "./testkit/phased";
import type { TcpProxy } from "./testkit/tcp-proxy";
import { World } from "./testkit/world";

// Short enough to wait for, long enough for a machine that is busy: a slow link must not look like a dead one.
const HEARTBEAT = { SH_RELAY_HEARTBEAT_MS: "800", SH_RELAY_DEADLINE_MS: "4000" };
const KEEPALIVE_MS = 3_000;

interface Fault {
  /** Whether it ends connections. */
  breaks: boolean;
  strike: (link: TcpProxy) => void;
  /** Resolves when an end has noticed; a fault that is over before anybody looks proves nothing. */
  noticed?: (link: TcpProxy, before: number) => Promise<unknown>;
}

/** The end that dials has given its connection up and dials again. */
const redials = (link: TcpProxy, before: number) => until("somebody dials anew", () => link.accepted > before, 20_000);

const faults: Record<string, Fault> = {
  cut: { breaks: true, strike: (l) => l.cut() },
  reset: { breaks: true, strike: (l) => l.reset() },
  "black hole": { breaks: true, strike: (l) => l.set({ kind: "black-hole" }), noticed: redials },
  "black hole, to the cluster only": { breaks: true, strike: (l) => l.set({ kind: "black-hole" }, "up"), noticed: redials },
  "half-close, from the cluster": { breaks: true, strike: (l) => l.halfClose("down"), noticed: redials },
  "half-close, to the cluster": { breaks: true, strike: (l) => l.halfClose("up"), noticed: redials },
  latency: { breaks: false, strike: (l) => l.set({ kind: "latency", ms: 60 }) },
  bandwidth: { breaks: false, strike: (l) => l.set({ kind: "bandwidth", bytesPerSecond: 200_000 }) },
  slicer: { breaks: false, strike: (l) => l.set({ kind: "slice", bytes: 500 }) },
};

let world: World;
beforeAll(async () => {
  world = await World.start({ relay: HEARTBEAT });
});
afterAll(() => world?.stop());
afterEach(() => {
  world.execLeg.heal();
  world.attachLeg.heal();
});

describe.each(["execLeg", "attachLeg"] as const)("%s", (leg) => {
  describe.each(Object.keys(faults))("%s", (name) => {
    const { breaks, strike, noticed } = faults[name] as Fault;

    it.each(["mid-output", "before the end"] as const)("%s", async (phase) => {
      if (leg === "attachLeg" && breaks) await world.freshWorker();
      const link = world[leg];
      const c = new Phased(world, world.transport({ keepaliveMs: KEEPALIVE_MS }), phase);
      await c.reached();
      const before = link.accepted;
      strike(link);
      if (noticed) await noticed(link, before);
      c.letGo();
      if (breaks) link.heal();
      const r = await c.expectWhole();
      expect(r.deliveries > 1).toBe(breaks);
    });

    it("idle", async () => {
      if (leg === "attachLeg" && breaks) await world.freshWorker();
      const link = world[leg];
      const t = world.transport({ keepaliveMs: KEEPALIVE_MS });
      expect((await t.exec("echo before")).stdout.toString()).toBe("before\n");
      strike(link);
      // Not a fault that anybody could notice on an idle exec leg: the first command meets it.
      const outcome = t.exec("echo x; echo y >&2; exit 4", { timeout: 60 });
      if (noticed && leg === "attachLeg") await noticed(link, link.accepted);
      if (breaks) link.heal();
      expect(await outcome).toMatchObject({ exitCode: 4, stdout: Buffer.from("x\n"), stderr: Buffer.from("y\n") });
    });
  });
});

describe("processes that die or freeze", () => {
  it.each(["relay", "worker"] as const)("a %s that is frozen for less than the grace time costs nothing but time", async (who) => {
    await world.freshWorker();
    const c = new Phased(world, world.transport({ keepaliveMs: KEEPALIVE_MS }), "mid-output");
    await c.reached();
    const from = world.worker.lines.length;
    world[who].signal("SIGSTOP");
    c.letGo();
    // Longer than the deadline: the other ends give the link up.
    await new Promise((r) => setTimeout(r, 6_000));
    world[who].signal("SIGCONT");
    await c.expectWhole();
    await world.attached(from);
  });

  it("Redis away: commands on attached workers go on", async () => {
    const c = new Phased(world, world.transport(), "mid-output");
    await c.reached();
    world.redis.process.signal("SIGSTOP");
    try {
      expect((await world.transport().exec("echo during")).stdout.toString()).toBe("during\n");
      c.letGo();
      await c.expectWhole();
    } finally {
      world.redis.process.signal("SIGCONT");
    }
  });

});
