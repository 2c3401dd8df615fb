// For tests only: real Redis, relay and worker processes, and a breakable link on each leg.
import { freePort, startProgram, startRedis, type RedisServer, type Running } from "@dialout/common/testkit";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { GrpcRelayTransport, type GrpcRelayOptions } from "../relay";
import { TcpProxy } from "./tcp-proxy";

export interface WorldOptions {
  sandboxId?: string;
  /** More variables of the relay and of the worker. */
  relay?: Record<string, string>;
  worker?: Record<string, string>;
}

export const EXEC_TOKEN = "exec-token-of-the-test";
export const WORKER_TOKEN = "worker-token-of-the-test";

export class World {
  relay!: Running;
  worker!: Running;
  /** harness -> relay, and worker -> relay. */
  execLeg!: TcpProxy;
  attachLeg!: TcpProxy;
  readonly dir = mkdtempSync(path.join(tmpdir(), "dialout-world-"));
  /** A folder that commands may write to. */
  readonly scratch = path.join(this.dir, "scratch");
  private readonly transports: GrpcRelayTransport[] = [];
  private readonly cleanups: (() => Promise<void>)[] = [];
  private disk = 0;
  ports = { attach: 0, exec: 0 };

  private constructor(readonly redis: RedisServer, readonly sandboxId: string, private readonly options: WorldOptions) {
    mkdirSync(this.scratch, { mode: 0o777 });
  }

  static async start(options: WorldOptions = {}): Promise<World> {
    const world = new World(await startRedis(), options.sandboxId ?? "sbx-test", options);
    try {
      world.ports = { attach: await freePort(), exec: await freePort() };
      world.attachLeg = await new TcpProxy({ port: world.ports.attach }).start();
      world.execLeg = await new TcpProxy({ port: world.ports.exec }).start();
      await world.startRelay();
      await world.startWorker();
      return world;
    } catch (e) {
      await world.stop();
      throw e;
    }
  }

  /** On the same ports as before; resolves when it listens. */
  async startRelay(): Promise<void> {
    this.relay = startProgram("relay", {
      SH_RELAY_HOST: "127.0.0.1",
      SH_RELAY_PORT: String(this.ports.attach),
      SH_RELAY_EXEC_PORT: String(this.ports.exec),
      SH_RELAY_TOKEN: WORKER_TOKEN,
      SH_RELAY_EXEC_TOKEN: EXEC_TOKEN,
      REDIS_URL: this.redis.url,
      ...this.options.relay,
    });
    await this.relay.line(/sandbox-relay listening on/);
  }

  /** On the same state folder as before, so with the same journal; resolves when it is attached. */
  async startWorker(): Promise<void> {
    this.worker = startProgram("remote-worker", {
      RELAY_ADDR: this.attachLeg.addr,
      SANDBOX_ID: this.sandboxId,
      SANDBOX_TOKEN: WORKER_TOKEN,
      WORKER_STATE_DIR: this.state,
      WORKER_MAX_CONCURRENT: "8",
      ...this.options.worker,
    });
    await this.attached();
  }

  /** Another worker of the same name, on a disk of its own: it has lost no link and no command yet. */
  async freshWorker(): Promise<void> {
    await this.worker.stop("SIGKILL");
    this.disk++;
    await this.startWorker();
  }

  /** The worker's state folder. */
  get state(): string {
    return path.join(this.dir, `state-${this.disk}`);
  }

  /** Resolves at the next `attached` line after the first `from` lines. */
  async attached(from = 0): Promise<void> {
    // A worker first makes sure that nothing is left of the commands that its last life left behind.
    await this.worker.line(/attached, serving execs/, 120_000, from);
  }

  transport(options: Partial<GrpcRelayOptions> = {}): GrpcRelayTransport {
    const t = new GrpcRelayTransport({ addr: this.execLeg.addr, sandboxId: this.sandboxId, execToken: EXEC_TOKEN, ...options });
    this.transports.push(t);
    return t;
  }

  file(name: string): string {
    return path.join(this.scratch, name);
  }

  /** Also to be done when the world ends, before its folder goes. */
  afterwards(cleanup: () => Promise<void>): void {
    this.cleanups.push(cleanup);
  }

  async stop(): Promise<void> {
    this.execLeg?.cut();
    await Promise.all(this.transports.map((t) => t.close()));
    await this.worker?.stop("SIGTERM");
    await this.relay?.stop();
    await this.execLeg?.stop();
    await this.attachLeg?.stop();
    for (const cleanup of this.cleanups) await cleanup();
    await this.redis.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }
}
