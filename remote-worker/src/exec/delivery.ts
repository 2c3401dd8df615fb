import type { Exec } from "@dialout/proto";
import type { Delivery } from "./outbox";
import type { Readable } from "./outputLog";
import type { Outcome } from "./outcome";

/** What a request is to be sent from its sources, from the given positions on. */
export function delivery(exec: Exec, sources: Record<"stdout" | "stderr", Readable>, sent: { stdout: number; stderr: number }, outcome: Outcome | undefined, replayed: boolean): Delivery {
  return {
    reqId: exec.reqId,
    sources,
    sent,
    credit: exec.window > 0n ? Number(exec.window) : Infinity,
    held: !exec.streaming,
    replayed,
    textMarker: exec.execId === "",
    outcome,
    lastSentMs: -Infinity,
  };
}
