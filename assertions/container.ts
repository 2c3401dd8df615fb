// The worker's container, through the docker CLI: it knows the user's context and DOCKER_HOST.
import { spawn } from "node:child_process";
import { LOG_LINES, type ExecOutput, type Inspected, type WorkerPort } from "./ports";

const LIMIT_MS = 30_000;

/** Runs docker. Resolves for every exit status; rejects when docker is not there or does not end in time. */
export function docker(args: readonly string[], stdin = "", ms = LIMIT_MS): Promise<ExecOutput> {
  return new Promise((resolve, reject) => {
    const child = spawn("docker", args, { stdio: ["pipe", "pipe", "pipe"], timeout: ms, killSignal: "SIGKILL" });
    const out: Buffer[] = [], err: Buffer[] = [];
    child.stdout.on("data", (d: Buffer) => out.push(d));
    child.stderr.on("data", (d: Buffer) => err.push(d));
    // A command that does not read its input closes the pipe: its own status says what there is to say.
    child.stdin.on("error", () => {});
    child.on("error", (e: NodeJS.ErrnoException) => reject(e.code === "ENOENT" ? new Error("docker is not installed, or not on PATH") : e));
    child.on("close", (code, signal) => {
      if (signal) return reject(new Error(`docker ${args[0]} did not end within ${ms / 1000} s`));
      resolve({ stdout: Buffer.concat(out).toString("utf8"), stderr: Buffer.concat(err).toString("utf8"), exitCode: code! });
    });
    child.stdin.end(stdin);
  });
}

/** Docker's own complaints, as opposed to those of a command it ran. */
const UNREACHABLE = /cannot connect to the docker daemon|error during connect|permission denied.*docker/i;

async function must(args: readonly string[]): Promise<string> {
  const r = await docker(args);
  if (r.exitCode !== 0) throw new Error(`docker ${args[0]}: ${r.stderr.trim() || `exit code ${r.exitCode}`}`);
  return r.stdout;
}

export class Container implements WorkerPort {
  constructor(private readonly name: string) {}

  async inspect(): Promise<{ parsed: Inspected; raw: string } | undefined> {
    const r = await docker(["container", "inspect", this.name]);
    if (r.exitCode !== 0) {
      if (/no such container/i.test(r.stderr)) return undefined;
      throw new Error(`docker inspect: ${r.stderr.trim()}`);
    }
    const parsed = (JSON.parse(r.stdout) as Inspected[])[0];
    return parsed && { parsed, raw: r.stdout };
  }

  async imageEnv(image: string): Promise<string[]> {
    const found = (JSON.parse(await must(["image", "inspect", image])) as { Config?: { Env?: string[] | null } }[])[0];
    return found?.Config?.Env ?? [];
  }

  async log(): Promise<string> {
    const r = await docker(["container", "logs", "--tail", String(LOG_LINES), this.name]);
    if (r.exitCode !== 0) throw new Error(`docker logs: ${r.stderr.trim()}`);
    return `${r.stdout}\n${r.stderr}`;
  }

  async exec(command: readonly string[], stdin?: string): Promise<ExecOutput> {
    const r = await docker(["exec", ...(stdin === undefined ? [] : ["-i"]), this.name, ...command], stdin);
    if (r.exitCode !== 0 && (UNREACHABLE.test(r.stderr) || /is not running|no such container/i.test(r.stderr))) throw new Error(`docker exec: ${r.stderr.trim()}`);
    return r;
  }
}
