import type { KillReport } from "./types";

export type TransportErrorCode =
  | "timeout" // the command's time was over
  | "aborted" // by the caller's signal
  | "closed" // the transport was closed
  | "interrupted" // it was started, its outcome is unknown, it was not run again
  | "disconnected" // the worker or the pod's connection went away while it ran
  | "not_found" // no such sandbox attached
  | "unavailable" // the relay or the API server cannot be reached
  | "unauthenticated" // the credential was refused
  | "busy" // the sandbox takes no more commands now
  | "collision" // the id belongs to another command
  | "spawn" // bash could not be started
  | "output_lost" // output in the middle is gone
  | "resource_exhausted" // a limit at relay or worker
  | "invalid" // the request itself is wrong
  | "kubectl" // kubectl failed, not the command
  | "internal"; // the other end broke the protocol

export interface TransportErrorDetails {
  kill?: KillReport;
  /** The command had no effect, or none that another try could double. */
  retryable?: boolean;
  execId?: string;
  deliveries?: number;
  cause?: unknown;
}

/** Why a command has no exit status. `message` is the contract's text (`timeout:<n>`, `aborted`, the worker's own words). */
export class TransportError extends Error {
  override readonly name = "TransportError";
  readonly kill: KillReport | undefined;
  readonly retryable: boolean;
  readonly execId: string | undefined;
  readonly deliveries: number | undefined;

  constructor(readonly code: TransportErrorCode, message: string, details: TransportErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kill = details.kill;
    this.retryable = details.retryable ?? false;
    this.execId = details.execId;
    this.deliveries = details.deliveries;
  }
}

/** The kill was asked for and nobody confirmed it. */
export const unverified = (why: string): KillReport => ({ found: 0, killed: 0, remaining: 0, verified: false, detail: `unverified: ${why}` });

/** There was nothing to kill. */
export const neverStarted: KillReport = { found: 0, killed: 0, remaining: 0, verified: true, detail: "never started" };
