import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { TransportError } from "@dialout/transports/errors";
import { DEFAULT_OUTPUT_CAP, DEFAULT_TIMEOUT_S, TRUNCATION_MARKER, type ExecOptions, type ExecResult, type SandboxTransport, type StreamName } from "@dialout/transports/types";

/** Keeps the first `cap` bytes and a marker, and passes on what it keeps. */
class Capped {
  private readonly parts: Buffer[] = [];
  private size = 0;
  truncated = false;

  constructor(private readonly cap: number, private readonly pass: (chunk: Buffer) => void) {}

  push(chunk: Buffer): void {
    if (this.truncated) return;
    const room = this.cap - this.size;
    this.keep(chunk.subarray(0, room));
    if (chunk.length <= room) return;
    this.truncated = true;
    this.keep(Buffer.from(TRUNCATION_MARKER));
  }

  private keep(chunk: Buffer): void {
    if (!chunk.length) return;
    this.parts.push(chunk);
    this.size += chunk.length;
    this.pass(chunk);
  }

  all(): Buffer {
    return Buffer.concat(this.parts);
  }
}

/**
 * Runs commands in this very container (SH_SANDBOX_LOCAL=1): for a laptop without a cluster, and for tests. Commands get an
 * environment without the harness's own variables, but share its user and files: not a boundary.
 */
export class LocalTransport implements SandboxTransport {
  private readonly stop = new AbortController();

  /** `root`, when given, is the HOME and the folder commands start in. */
  constructor(private readonly root = process.cwd()) {}

  exec(command: string, options: ExecOptions = {}): Promise<ExecResult> {
    const { timeout = DEFAULT_TIMEOUT_S, outputCap = DEFAULT_OUTPUT_CAP, stdin, onData } = options;
    const execId = randomUUID();
    const signals = [this.stop.signal, ...(options.signal ? [options.signal] : [])];
    const limit = timeout > 0 ? AbortSignal.timeout(Math.ceil(timeout * 1000)) : undefined;
    const any = AbortSignal.any(limit ? [...signals, limit] : signals);
    return new Promise((resolve, reject) => {
      if (any.aborted) return reject(new TransportError("aborted", "aborted", { execId }));
      // SHLVL: a first-level bash whose stdin is a socket, as node's pipes are, reads ~/.bashrc.
      const env = { PATH: process.env.PATH, HOME: this.root, LANG: "C.UTF-8", SHLVL: "1" };
      const child = spawn("bash", ["-c", command], { cwd: this.root, detached: true, env });
      const streams = (["stdout", "stderr"] as StreamName[]).map((name) => {
        const kept = new Capped(outputCap, (chunk) => void onData?.(chunk, name));
        child[name as "stdout" | "stderr"].on("data", (chunk: Buffer) => kept.push(chunk));
        return kept;
      });
      const kill = () => {
        try {
          process.kill(-child.pid!, "SIGKILL");
        } catch {
          // gone already
        }
      };
      any.addEventListener("abort", kill, { once: true });
      child.once("error", (e) => {
        any.removeEventListener("abort", kill);
        reject(e);
      });
      child.once("close", (code) => {
        any.removeEventListener("abort", kill);
        if (limit?.aborted) return reject(new TransportError("timeout", `timeout:${timeout}`, { execId }));
        if (any.aborted) return reject(new TransportError(this.stop.signal.aborted ? "closed" : "aborted", "aborted", { execId }));
        const [out, err] = streams as [Capped, Capped];
        resolve({ stdout: out.all(), stderr: err.all(), exitCode: out.truncated ? null : code, truncated: out.truncated, stderrTruncated: err.truncated, deliveries: 1, execId });
      });
      // A command may end without reading its stdin.
      child.stdin.on("error", () => undefined);
      child.stdin.end(stdin);
    });
  }

  close(): Promise<void> {
    this.stop.abort();
    return Promise.resolve();
  }
}
