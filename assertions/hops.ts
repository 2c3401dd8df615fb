// What the machines in between say about a leaf: their logs, read past the harness. Pure rules.
import { show } from "@dialout/common";
import type { LeafAnswer } from "./rules";

/** A leaf's answer, and whether it was asked of the arm whose commands run on the worker. */
export interface Asked {
  name: string;
  remote: boolean;
  answer: LeafAnswer;
}

export interface HopLogs {
  worker: string;
  relay: string;
}

/** exec_id → trace ids under which a program logged it. Lines that are not ours are passed over. */
function execsIn(log: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const line of log.split("\n")) {
    if (!line.startsWith("{")) continue;
    let entry: { exec_id?: unknown; trace?: unknown };
    try {
      entry = JSON.parse(line) as typeof entry;
    } catch {
      continue; // cut by log rotation
    }
    if (typeof entry.exec_id !== "string") continue;
    const traces = found.get(entry.exec_id) ?? new Set<string>();
    const trace = typeof entry.trace === "string" ? entry.trace.split("-")[1] : undefined;
    if (trace) traces.add(trace);
    found.set(entry.exec_id, traces);
  }
  return found;
}

/**
 * What does not fit between the leaves' answers and the logs of relay and worker: every command of a remote leaf must be in both, under
 * that leaf's trace; no command and no trace of another leaf may be in either. Leaves without a verdict are judged by their own check.
 */
export function hopProblems(leaves: readonly Asked[], logs: HopLogs): string[] {
  const problems: string[] = [];
  const hops = Object.entries(logs).map(([hop, log]) => ({ hop, execs: execsIn(log) }));
  for (const { name, remote, answer } of leaves) {
    const { traceId, execIds, status } = answer;
    if (status !== "done") continue;
    if (!traceId) problems.push(`${name}: the harness names no trace`);
    if (remote && execIds.length === 0) problems.push(`${name}: the harness names no command that it ran`);
    for (const { hop, execs } of hops) {
      if (remote) {
        const missing = execIds.find((id) => !execs.get(id)?.has(traceId ?? ""));
        if (missing !== undefined) problems.push(`${name}: the ${hop} ${execs.has(missing) ? "ran it under another trace" : "knows nothing of"} command ${show(missing)}`);
      } else if (execIds.some((id) => execs.has(id)) || [...execs.values()].some((t) => t.has(traceId ?? ""))) {
        problems.push(`${name}: the ${hop} has seen commands of it, though it ran on a pod`);
      }
    }
  }
  return problems;
}

/** How many commands the remote leaves named. */
export const commandCount = (leaves: readonly Asked[]) => leaves.filter((l) => l.remote).reduce((n, l) => n + l.answer.execIds.length, 0);
