import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { repoRoot, run, startProgram, startRedis, type RedisServer, type Running } from "@dialout/common/testkit";

export const execToken = randomBytes(16).toString("hex");
export const workerToken = randomBytes(16).toString("hex");

/** A real Redis, relay and worker on loopback, and how to end them. */
export interface Bench {
  readonly redis: RedisServer;
  readonly relay: Running;
  readonly attachPort: number;
  readonly execPort: number;
  stop(): Promise<void>;
}

const portOf = (line: string) => Number(/:(\d+)/.exec(line)![1]);

export async function startRelay(env: Record<string, string> = {}): Promise<Bench> {
  const redis = await startRedis();
  const relay = startProgram("relay", {
    SH_RELAY_HOST: "127.0.0.1", SH_RELAY_PORT: "0", SH_RELAY_EXEC_PORT: "0", REDIS_URL: redis.url,
    SH_RELAY_TOKEN: workerToken, SH_RELAY_EXEC_TOKEN: execToken, LOG_LEVEL: "info", ...env,
  });
  const ports = await Promise.all([relay.line(/sandbox-relay listening on :\d+/), relay.line(/exec.*listening on :\d+/i)]);
  const port = (l: string) => portOf(/listening on (:\d+)/.exec(l)![1]!);
  return {
    redis, relay, attachPort: port(ports[0]), execPort: port(ports[1]),
    async stop() {
      await relay.stop();
      await redis.stop();
    },
  };
}

export async function startWorker(bench: Bench, id: string, env: Record<string, string> = {}): Promise<Running> {
  const state = mkdtempSync(path.join(tmpdir(), "bench-worker-"));
  const worker = startProgram("remote-worker", {
    RELAY_ADDR: `127.0.0.1:${bench.attachPort}`, SANDBOX_ID: id, SANDBOX_TOKEN: workerToken, WORKER_STATE_DIR: state, ...(process.env.BENCH_ISOLATION ? { SANDBOX_ISOLATION: process.env.BENCH_ISOLATION } : {}), ...env,
  });
  worker.child.once("close", () => rmSync(state, { recursive: true, force: true }));
  await worker.line(/attached, serving execs/);
  return worker;
}

/** Another TypeScript program of this folder in a process of its own. */
export function companion(file: string, args: string[], env: Record<string, string> = {}): Running {
  return run(process.execPath, [path.join(repoRoot(), "scripts/run-ts.mjs"), path.join(repoRoot(), "bench", file), ...args], { env, label: file });
}

/** Resident memory of a process in MiB. */
export function rssMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;
}

/** Runs a program to its end, its output thrown away; rejects when it fails. */
export function spawned(command: string, args: string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "ignore", "ignore"] });
    child.once("error", reject);
    child.once("close", (code) => (code === 0 ? resolve() : reject(new Error(`${command} ${args.join(" ")} ended with ${code}`))));
  });
}
