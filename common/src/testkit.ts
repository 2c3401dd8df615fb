// For tests only: real Redis and real programs as child processes, each with what it printed.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import net from "node:net";
import path from "node:path";

/** The repository's root: the nearest folder upwards that holds the protocol. */
export function repoRoot(from = __dirname): string {
  for (let dir = from; ; dir = path.dirname(dir)) {
    if (existsSync(path.join(dir, "proto/sandbox/v1/sandbox.proto"))) return dir;
    if (dir === path.dirname(dir)) throw new Error(`no repository root above ${from}`);
  }
}

/** A port that was free a moment ago, on loopback. */
export async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

/** Polls `probe` until it returns something other than undefined or false; fails with `what` after `ms`. */
export async function until<T>(what: string, probe: () => Promise<T | undefined | false> | T | undefined | false, ms = 15_000): Promise<T> {
  const end = Date.now() + ms;
  for (;;) {
    const got = await probe();
    if (got !== undefined && got !== false) return got as T;
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await new Promise((r) => setTimeout(r, 20));
  }
}

/** A child process of its own group, its output line by line. `stop()` ends the whole group and waits. */
export class Running {
  readonly lines: string[] = [];
  exit: { code: number | null; signal: NodeJS.Signals | null } | undefined;
  private readonly closed: Promise<void>;

  constructor(readonly child: ChildProcess, readonly label: string) {
    for (const stream of [child.stdout, child.stderr]) {
      let rest = "";
      stream?.setEncoding("utf8").on("data", (text: string) => {
        const parts = (rest + text).split("\n");
        rest = parts.pop() ?? "";
        this.lines.push(...parts);
      });
    }
    this.closed = new Promise((resolve) => {
      child.once("error", (e) => {
        this.lines.push(String(e));
        this.exit = { code: null, signal: null };
        resolve();
      });
      child.once("close", (code, signal) => {
        this.exit = { code, signal };
        resolve();
      });
    });
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error(`${this.label} was not started: ${this.lines.join("\n")}`);
    return this.child.pid;
  }

  output(): string {
    return this.lines.join("\n");
  }

  /** Resolves with the first line that matches, also one printed before the call. `from` skips that many lines. */
  line(pattern: RegExp, ms = 20_000, from = 0): Promise<string> {
    return until(`${this.label}: a line like ${pattern}; printed so far:\n${this.output()}`, () => {
      const hit = this.lines.slice(from).find((l) => pattern.test(l));
      if (hit === undefined && this.exit) throw new Error(`${this.label} ended (${JSON.stringify(this.exit)}) before a line like ${pattern}:\n${this.output()}`);
      return hit;
    }, ms);
  }

  signal(name: NodeJS.Signals): void {
    try {
      process.kill(-this.pid, name);
    } catch (e) {
      if ((e as NodeJS.ErrnoException).code !== "ESRCH") throw e;
    }
  }

  async ended(ms = 20_000): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    return until(`${this.label} ends; printed:\n${this.output()}`, () => this.exit, ms);
  }

  async stop(name: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (!this.exit) {
      if (name !== "SIGCONT") this.signal("SIGCONT");
      this.signal(name);
    }
    await this.closed;
  }
}

export function run(command: string, args: string[], options: { env?: Record<string, string>; cwd?: string; label?: string } = {}): Running {
  const child = spawn(command, args, {
    cwd: options.cwd,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...options.env },
  });
  return new Running(child, options.label ?? path.basename(command));
}

const built = new Set<string>();

/** Starts one of our programs from its bundle, built from the present sources. Only the given variables reach it. */
export function startProgram(name: "relay" | "remote-worker" | "harness" | "model-endpoint", env: Record<string, string>): Running {
  const root = repoRoot();
  if (!built.has(name)) {
    execFileSync(process.execPath, [path.join(root, "scripts/build.mjs"), name], { stdio: "pipe" });
    built.add(name);
  }
  return run(process.execPath, ["--enable-source-maps", path.join(root, name, "dist/main.cjs")], { env, label: name });
}

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  readonly process: Running;
  stop(): Promise<void>;
}

/** A Redis server of the test's own, on a free port, without persistence. Needs `redis-server` on PATH. */
export async function startRedis(port?: number): Promise<RedisServer> {
  const p = port ?? (await freePort());
  const server = run("redis-server", ["--port", String(p), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", "/tmp"]);
  await server.line(/Ready to accept connections/);
  return { url: `redis://127.0.0.1:${p}`, port: p, process: server, stop: () => server.stop() };
}
