// The verdict rules: pure, so that every way of being fooled has a test. A rule returns what is wrong; nothing = believed.
import type { HttpAnswer } from "./ports";

/** A leaf's answer after it was checked at the edge. `status` other than "done" carries no verdict. */
export interface LeafAnswer {
  status: string;
  itemId?: string;
  verdict?: string;
  reason?: string;
  sandbox?: { kind: string; name: string };
  /** Why there is no verdict. */
  failure?: string;
  /** The harness says that a script answered; undefined when it says nothing. */
  scripted?: boolean;
  /** W3C trace id of the run. */
  traceId?: string;
  /** The commands that the harness says it ran for it. */
  execIds: readonly string[];
  /** The whole answer as it came. */
  raw: string;
  elapsedMs: number;
}

export interface Expectation {
  /** Fresh for each leaf, so that an answer to another question cannot be taken for one to this. */
  itemId: string;
  verdict: "FLAGGED" | "CLEAR";
  sandbox: { kind: "pod" | "remote"; names: readonly string[] };
  pattern: string;
  /** The reason must hold one of these: text that only the right file has. Those within the pattern do not count. */
  quotes: readonly string[];
  /** The reason must hold none of these: text that only the other side's file has. */
  foreign: readonly string[];
  /** What the user was told the model is. */
  scripted: boolean;
}

const text = (v: unknown): string | undefined => (typeof v === "string" ? v : undefined);
const object = (v: unknown): Record<string, unknown> => (typeof v === "object" && v !== null ? (v as Record<string, unknown>) : {});
const list = (v: unknown): unknown[] => (Array.isArray(v) ? v : []);

/** Reads the harness's answer; never throws. What is missing or of the wrong type is simply not there. */
export function readAnswer({ status, body, elapsedMs }: HttpAnswer): LeafAnswer {
  let json: Record<string, unknown>;
  try {
    json = object(JSON.parse(body));
  } catch {
    return { status: `HTTP ${status}`, failure: body ? `no JSON: ${body.slice(0, 120)}` : "empty answer", raw: body, execIds: [], elapsedMs };
  }
  const verdict = object(json.verdict);
  const box = object(json.sandbox);
  const kind = text(box.kind);
  const { scripted } = object(json.model);
  const why = [json.reason, json.message, json.error].map(text).filter(Boolean).join(": ");
  return {
    status: status === 200 ? (text(json.status) ?? "no status") : `HTTP ${status}`,
    itemId: text(verdict.item_id),
    verdict: text(verdict.verdict),
    reason: text(verdict.reason),
    sandbox: kind ? { kind, name: text(box.name) ?? "" } : undefined,
    failure: why || undefined,
    scripted: typeof scripted === "boolean" ? scripted : undefined,
    traceId: text(json.traceId),
    execIds: list(json.tools).flatMap((t) => list(object(t).execs)).flatMap((e) => text(object(e).execId) ?? []),
    raw: body,
    elapsedMs,
  };
}

export const place = (a: LeafAnswer) => (a.sandbox ? `${a.sandbox.kind}/${a.sandbox.name}` : "none");

/** One line for the evidence. */
export function tell(a: LeafAnswer): string {
  const what = a.status === "done" ? `${a.verdict ?? "no verdict"} from ${place(a)}: ${a.reason || "no reason"}` : `${a.status} from ${place(a)}${a.failure ? `: ${a.failure}` : ""}`;
  return `${what} [${a.elapsedMs} ms]`;
}

function placeProblems(a: LeafAnswer, { kind, names }: Expectation["sandbox"]): string[] {
  if (!a.sandbox) return ["the harness does not say where the tool calls ran"];
  if (a.sandbox.kind !== kind) return [`ran in ${place(a)}, not in a ${kind === "pod" ? "pool pod" : "remote worker"}`];
  return names.includes(a.sandbox.name) ? [] : [`ran in ${place(a)}, which is not one of ours (${names.join(", ") || "there is none"})`];
}

/** Text that proves the file was read: longer than what the prompt gave away. */
const beyond = (quotes: readonly string[], pattern: string) => quotes.filter((q) => q && !pattern.includes(q));

/** What is wrong with a leaf's answer. Verdict, place and reason must all agree; each alone can be right by accident. */
export function leafProblems(a: LeafAnswer, want: Expectation): string[] {
  if (a.status !== "done") return [`the leaf ended as '${a.status}'${a.failure ? `: ${a.failure}` : ""}`, ...placeProblems(a, want.sandbox)];
  const problems: string[] = [];
  if (a.itemId !== want.itemId) problems.push(`answers item ${JSON.stringify(a.itemId)}, asked was ${JSON.stringify(want.itemId)}: an old answer`);
  if (a.verdict !== want.verdict) problems.push(`verdict ${a.verdict ?? "missing"}, expected ${want.verdict}`);
  problems.push(...placeProblems(a, want.sandbox));
  if (a.scripted !== undefined && a.scripted !== want.scripted) problems.push(`answered by ${a.scripted ? "a script" : "a model"}, labelled as ${want.scripted ? "a script" : "a model"}`);
  const reason = a.reason?.trim() ?? "";
  if (!reason) problems.push("the reason is empty");
  else if (!beyond(want.quotes, want.pattern).some((q) => reason.includes(q))) problems.push("the reason quotes nothing of the real file: it may never have been read");
  const foreign = beyond(want.foreign, want.pattern).find((f) => reason.includes(f));
  if (foreign !== undefined) problems.push(`the reason quotes the other side's file: ${foreign}`);
  return problems;
}

/**
 * The control: an arm that has the remote flag and yet lands on a pod. It is caught when the rules for a remote leaf reject
 * its answer *and* it can be seen why; anything else means that the rules, or the arm, are not what they should be.
 */
export function miswiredProblems(a: LeafAnswer, asRemote: Expectation, asPod: Expectation): string[] {
  if (leafProblems(a, asRemote).length === 0) return ["the rules believed a leaf of the miswired arm: they would believe anything"];
  return leafProblems(a, asPod).map((p) => `not the mistake it should show: ${p}`);
}

/** The marker asked for on the pods' side: nobody there may know the secret half, and nobody may claim to have found it. */
export function strangerProblems(a: LeafAnswer, secret: string, sandbox: Expectation["sandbox"]): string[] {
  const problems = placeProblems(a, sandbox);
  if (a.raw.includes(secret)) problems.push("the pods' side knows the marker: both arms use the same backend");
  if (a.verdict === "FLAGGED") problems.push("claims to have found a marker that is not there");
  const honest = (a.status === "done" && a.verdict === "CLEAR") || (a.status === "failed" && /^(no_verdict|bad_inputs)\b/.test(a.failure ?? ""));
  if (!honest && a.verdict !== "FLAGGED") problems.push(`the leaf ended as '${a.status}'${a.failure ? `: ${a.failure}` : ""}, which says nothing about the file`);
  return problems;
}

/** How old a presence record may be; the harness ignores older ones too. */
export const PRESENCE_MAX_AGE_MS = 60_000;
/** Clocks of relay and Redis may differ by this much. */
const CLOCK_SLACK_MS = 5_000;

/** What is wrong with our worker's presence record. */
export function presenceProblems(raw: string | undefined, id: string, now: number): string[] {
  if (raw === undefined) return [`no record for ${id}: the worker is not attached`];
  let r: Record<string, unknown>;
  try {
    r = object(JSON.parse(raw));
  } catch {
    return ["the record is not JSON"];
  }
  const problems: string[] = [];
  if (r.sandboxId !== id) problems.push(`the record is of ${JSON.stringify(r.sandboxId)}`);
  if (r.transport !== "grpc") problems.push(`transport is ${JSON.stringify(r.transport)}, not "grpc"`);
  const seen = r.lastSeenMs;
  if (typeof seen !== "number" || !Number.isFinite(seen)) problems.push("it has no lastSeenMs: nothing says that it is not a ghost");
  else if (now - seen > PRESENCE_MAX_AGE_MS) problems.push(`last seen ${Math.round((now - seen) / 1000)} s ago: a ghost`);
  else if (seen - now > CLOCK_SLACK_MS) problems.push(`last seen ${Math.round((seen - now) / 1000)} s in the future`);
  return problems;
}
