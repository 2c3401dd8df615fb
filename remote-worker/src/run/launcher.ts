import type net from "node:net";
import type { KillResult, Marks } from "../kill/hunt";

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
  readonly stdout: net.Socket;
  readonly stderr: net.Socket;
  /** Resolves when the leader has ended; rejects when it could not be started. */
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
  /** @param stdin descriptor of a file to read from; it stays the caller's to close. Without it standard input is empty. */
  prepare(stdin?: number): Promise<Prepared>;
  close(): void;
}
