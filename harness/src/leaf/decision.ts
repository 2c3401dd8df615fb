import type { Envelope } from "../envelope";
import type { History, SessionLog } from "../store/session-log";
import { LeafFailure } from "./result";

/**
 * Records a person's decision on the session's open gate and returns the history with it. Repeating the same decision is
 * fine; another one for a decided gate, or one for a gate the session does not have, is `bad_inputs`.
 */
export async function decide(session: SessionLog, history: History, decision: NonNullable<Envelope["decision"]>): Promise<History> {
  const { gateId, action, feedback } = decision;
  if (history.gate?.gateId === gateId) {
    await session.append({ type: "decision", gateId, action, feedback });
    return { ...history, decision: { gate: history.gate, action, feedback }, gate: undefined };
  }
  const made = history.decision;
  if (made?.gate.gateId === gateId) {
    if (made.action === action) return history;
    throw new LeafFailure("bad_inputs", `gate ${gateId} was already decided: ${made.action}`);
  }
  const open = history.gate ? `the open gate is ${history.gate.gateId}` : "no gate is open";
  throw new LeafFailure("bad_inputs", `session ${session.sid} has no gate ${JSON.stringify(gateId)}; ${open}`);
}
