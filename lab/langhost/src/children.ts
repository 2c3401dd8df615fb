// The programs under way, so that a cancel reaches them.
import { spawn, type ChildProcess, type SpawnOptions } from "node:child_process";

/** From a polite end to a forced one. */
const KILL_AFTER_MS = 5_000;

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export class Children {
  private readonly running = new Set<ChildProcess>();

  /** Resolves when the child has ended and its output is through; rejects when it could not be started. */
  run(program: string, args: readonly string[], options: SpawnOptions, started?: (child: ChildProcess) => void): Promise<Ended> {
    const child = spawn(program, args, options);
    this.running.add(child);
    started?.(child);
    return new Promise<Ended>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => resolve({ code, signal }));
    }).finally(() => this.running.delete(child));
  }

  endAll(): void {
    for (const child of this.running) end(child);
  }
}

export function end(child: ChildProcess): void {
  child.kill("SIGTERM");
  const force = setTimeout(() => child.kill("SIGKILL"), KILL_AFTER_MS);
  child.once("exit", () => clearTimeout(force));
}
