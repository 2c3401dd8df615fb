import type { KillResult } from "../kill/hunt";

/** How a command ended, as it is journalled and replayed. Bytes and times are numbers below 2^53. */
export type Outcome =
  | {
      kind: "end";
      /** 0..255, or -1 when a signal ended it. */
      exitCode: number;
      signal: string;
      stdoutBytes: number;
      stderrBytes: number;
      stdoutTruncated: boolean;
      stderrTruncated: boolean;
      durationMs: number;
      kill?: KillResult;
    }
  | { kind: "error"; message: string; code: ErrorCode; kill?: KillResult };

export type ErrorCode =
  | "timeout" | "aborted" | "interrupted" | "busy" | "collision" | "spawn" | "journal_mismatch" | "output_lost" | "resource_exhausted" | "invalid";

export const failure = (code: ErrorCode, message: string, kill?: KillResult): Outcome => ({ kind: "error", code, message, kill });

/** Why a command is being killed. */
export type Stop = { why: "abort" } | { why: "timeout"; seconds: number } | { why: "unheard"; ms: number } | { why: "shutdown" };

/**
 * The terminal answer of a command that ended or was killed. A real exit status wins over a stop that came while output was
 * still draining.
 */
export function outcomeOf(exit: { code?: number; signal?: string } | undefined, stop: Stop | undefined, rest: Omit<Extract<Outcome, { kind: "end" }>, "kind" | "exitCode" | "signal">): Outcome {
  if (exit?.code !== undefined) return { kind: "end", exitCode: exit.code, signal: "", ...rest };
  if (stop?.why === "timeout") return failure("timeout", `timeout:${stop.seconds}`, rest.kill);
  const kill = stop?.why === "unheard" && rest.kill ? { ...rest.kill, detail: [`nobody listened for ${stop.ms} ms`, rest.kill.detail].filter(Boolean).join("; ") } : rest.kill;
  return { kind: "end", exitCode: -1, signal: exit?.signal ?? "SIGKILL", ...rest, kill };
}

/** Whether a base caller's id may be answered from this outcome later; the others are run again under the same id. */
export function cachedForBase(o: Outcome): boolean {
  return o.kind === "end" ? o.exitCode >= 0 : o.code === "timeout";
}
