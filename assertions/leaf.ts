import { randomBytes } from "node:crypto";
import type { VerdictRow } from "./evidence";
import type { ProofInput } from "./input";
import type { World } from "./ports";
import { place, readAnswer, type LeafAnswer } from "./rules";

export interface Question {
  arm: keyof ProofInput["arms"];
  file: string;
  pattern: string;
}

/** A question with the ids under which it will be asked: random, so that no stored answer can match. */
export interface Prepared extends Question {
  sessionId: string;
  itemId: string;
}

export function prepare(question: Question): Prepared {
  const id = randomBytes(8).toString("hex");
  return { ...question, sessionId: `proof-${question.arm}-${id}`, itemId: `item-${randomBytes(6).toString("hex")}` };
}

/** Redis keys a session leaves behind; a leaf that finds its session's log answers from it instead of running. */
export const sessionKeys = (q: Prepared) => [`session:${q.sessionId}`, `leaf:result:${q.sessionId}`];

/** Asks one leaf through the arm's own service. Rejects only when no HTTP answer came back. */
export async function ask(world: World, input: ProofInput, q: Prepared): Promise<LeafAnswer> {
  const body = { sessionId: q.sessionId, item: { item_id: q.itemId, file: q.file, pattern: q.pattern } };
  return readAnswer(await world.harness.run(input.arms[q.arm], body));
}

export function row(q: Question, expected: string, a: LeafAnswer): VerdictRow {
  const verdict = a.status === "done" ? (a.verdict ?? "none") : a.status;
  return { arm: q.arm, pattern: q.pattern, expected, verdict, reason: a.reason || a.failure || "", sandbox: place(a), elapsedMs: a.elapsedMs };
}
