// What both transports share about ending a command: why it was stopped, its timers, its result.
import { TransportError, type TransportErrorCode } from "./errors";
import type { Output } from "./output";
import type { ExecResult, KillReport } from "./types";

/** Why the command has to end: an error to reject with, the listener's own error, or a flood (its cut output is the result). */
export type Stop = { code: TransportErrorCode; message: string } | { code: "flood" } | { code: "listener"; cause: unknown };

export const STOP_ABORTED: Stop = { code: "aborted", message: "aborted" };
export const STOP_CLOSED: Stop = { code: "closed", message: "the transport was closed" };
export const stopTimeout = (seconds: number): Stop => ({ code: "timeout", message: `timeout:${seconds}` });

export interface ResultDetails {
  kill?: KillReport;
  replayed?: boolean;
  deliveries: number;
  execId: string;
}

export function makeResult({ stdout, stderr }: Output, exitCode: number | null, { kill, replayed, ...ids }: ResultDetails): ExecResult {
  return {
    stdout: stdout.result(),
    stderr: stderr.result(),
    exitCode: stdout.truncated ? null : exitCode,
    truncated: stdout.truncated,
    stderrTruncated: stderr.truncated,
    ...(kill ? { kill } : {}),
    ...(replayed ? { replayed } : {}),
    ...ids,
  };
}

/** The error again, with what is known about the exec. */
export function withIds(e: TransportError, ids: { execId: string; deliveries: number }, kill?: KillReport): TransportError {
  return new TransportError(e.code, e.message, { kill: e.kill ?? kill, retryable: e.retryable, ...ids });
}

export class Timers {
  private readonly pending = new Set<NodeJS.Timeout>();

  after(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.pending.delete(timer);
      act();
    }, ms);
    this.pending.add(timer);
  }

  clear(): void {
    for (const timer of this.pending) clearTimeout(timer);
    this.pending.clear();
  }
}
