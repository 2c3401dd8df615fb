import type { KillResult, Marks } from "../kill/hunt";
import type { PipeReader } from "./pipes";

/** How the leader of a command ended: a status, or the name of the signal that ended it. */
export type Exit = { code: number; signal?: undefined } | { code?: undefined; signal: string };

export interface Input {
  command: string;
  /** W3C trace context, or empty. */
  traceparent: string;
}

/** A place that is ready to run one command; nothing of the command has run yet. */
export interface Prepared {
  readonly marks: Marks;
  start(input: Input): RunningCommand;
  /** Gives the place back unused. */
  discard(): void;
}

export interface RunningCommand {
  readonly stdout: PipeReader;
  readonly stderr: PipeReader;
  /** Resolves when the leader has ended. */
  readonly exited: Promise<Exit>;
  /** Remembers the processes seen now, where marks alone would not tell them later. */
  observe(): void;
  /** Kills all processes of the command; resolves when none is left or when that could not be made sure. Idempotent. */
  kill(): Promise<KillResult>;
  /** After a normal end: kills what the command left behind. Undefined when there was nothing. */
  settle(): Promise<KillResult | undefined>;
  /** For the last moment of the worker: SIGKILL to what can be reached without waiting. */
  killNow(): void;
}

export type IsolationKind = "pidns" | "user" | "none";

export interface Launcher {
  readonly kind: IsolationKind;
  /** @param stdin what standard input holds; rejects with ENOSPC when there is no room for it */
  prepare(stdin?: Uint8Array): Promise<Prepared>;
  close(): void;
}
