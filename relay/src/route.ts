import { ExecEvent } from "@dialout/proto";
import type { CreditLedger } from "./credit";
import type { ExecSink } from "./sink";
import { viewOf } from "./exec-request";

/** One exec on one worker session, from its delivery to its terminal frame. It outlives its caller's stream. */
export interface Route {
  readonly reqId: number;
  /** Empty = base caller. */
  readonly execId: string;
  readonly graceS: number;
  /** The newest delivery's stream; undefined once its caller is gone. */
  sink: ExecSink | undefined;
  /** Of the newest delivery; undefined for a base worker. */
  credit: CreditLedger | undefined;
  deliveries: number;
  /** Deliveries that the worker has not answered yet, with Accepted or an error. */
  unanswered: number;
  /** The worker was told to stop it. */
  aborted: boolean;
  /** Ends the wait for a terminal frame that never comes. */
  expiry: NodeJS.Timeout | undefined;
}

/**
 * Whether what arrives now belongs to an earlier delivery: a new one was handed over and the worker has not come to it. Such
 * output continues at another position than the new caller asked for, and would look like a gap.
 */
export function isStale(route: Pick<Route, "deliveries" | "unanswered">): boolean {
  return route.deliveries > 1 && route.unanswered > 0;
}

/** Outcomes of a command that was started: the worker replays them for the new delivery. */
const REPLAYED_LATER = new Set(["timeout", "aborted"]);

/** Takes a terminal frame into account; true when it is the answer to the newest delivery and may be forwarded. */
export function settles(route: Pick<Route, "deliveries" | "unanswered">, kind: "end" | "error", code: () => string): boolean {
  if (!isStale(route)) return true;
  if (kind === "end" || REPLAYED_LATER.has(code())) return false;
  route.unanswered--;
  return route.unanswered === 0;
}

export function disconnectedEvent(reqId: number): Buffer {
  const value = { reqId: BigInt(reqId), message: "worker disconnected", code: "disconnected", kill: undefined, replayed: false };
  return viewOf(ExecEvent.encode({ event: { $case: "error", value } }).finish());
}

/** How long a route without a caller waits for the worker's terminal frame before the relay forgets it. */
export function expiryMs(route: Pick<Route, "graceS" | "aborted">): number {
  const KILL_BOUND_MS = 60_000;
  return (route.aborted ? 0 : route.graceS * 1000) + KILL_BOUND_MS;
}
