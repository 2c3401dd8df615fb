import { verdictSchema, type Verdict } from "../store/session-log";
import { ToolError } from "./context";

export interface Gate {
  summary: string;
  proposed_action: string;
}

/** How a leaf's reporting stands. Filled by the two reporting tools, read by the loop. */
export interface Report {
  verdict?: Verdict;
  gate?: Gate;
  /** The last refused verdict, if no good one followed. */
  invalid?: string;
}

/** Checks a verdict against the request: its item, one of the two labels, a reason with words in it. */
export function checkVerdict(input: unknown, itemId: string): Verdict | { problem: string } {
  const parsed = verdictSchema.safeParse(input);
  if (!parsed.success) return { problem: parsed.error.issues.map((i) => `${i.path.join(".")}: ${i.message}`).join("; ") };
  if (parsed.data.item_id !== itemId) return { problem: `item_id must be ${JSON.stringify(itemId)}, the item you were given` };
  if (!/[\p{L}\p{N}]/u.test(parsed.data.reason)) return { problem: "reason must say why, in words" };
  return parsed.data;
}

/** Takes the verdict, or throws a ToolError that the model may answer with a better one. */
export function submitVerdict(report: Report, input: unknown, itemId: string): string {
  const checked = checkVerdict(input, itemId);
  if ("problem" in checked) {
    report.invalid = checked.problem;
    throw new ToolError(`the verdict was not accepted: ${checked.problem}`);
  }
  report.verdict = checked;
  report.invalid = undefined;
  return `Verdict recorded: ${checked.verdict}`;
}

export function requestApproval(report: Report, gate: Gate): string {
  if (!gate.summary.trim() || !gate.proposed_action.trim()) throw new ToolError("summary and proposed_action must not be empty");
  report.gate = gate;
  return "Parked. A person will decide; the work goes on after that.";
}
