// What the demonstrations' measurements mean. Pure.
import type { ExecResult } from "@dialout/transports";

/** Live output arrives over the time it is written in, not in one burst at the end. `times` in ms. */
export function spreadProblems(times: readonly number[], stdout: string): string[] {
  const problems: string[] = [];
  if (stdout !== "line 1\nline 2\nline 3\nline 4\nline 5\n") problems.push(`the output is ${JSON.stringify(stdout.slice(0, 80))}`);
  const spread = times.length ? times.at(-1)! - times[0]! : 0;
  if (times.length < 4) problems.push(`only ${times.length} arrivals for 5 lines`);
  if (spread < 1000) problems.push(`all within ${Math.round(spread)} ms, written over 1600 ms`);
  return problems;
}

/** After an abort: the caller was told so, everything had run, nothing runs any more. */
export function goneProblems(error: (Error & { kill?: { verified: boolean; remaining: number } }) | undefined, before: readonly number[], after: readonly number[]): string[] {
  const problems: string[] = [];
  if (error?.message !== "aborted") problems.push(`the caller was told ${JSON.stringify(error?.message ?? "nothing")}`);
  if (!error?.kill?.verified || error.kill.remaining) problems.push("the kill was not verified");
  before.forEach((n, i) => {
    if (n === 0) problems.push(`process ${i + 1} never ran`);
    if (after[i] !== n) problems.push(`process ${i + 1} lives on: ${n} then ${after[i]} bytes`);
  });
  return problems;
}

/** `told` within reasonable time of `afterMs`, and not before. */
export function timeoutProblems(told: string | undefined, expected: string, elapsedMs: number, afterMs: number): string[] {
  const problems: string[] = [];
  if (told !== expected) problems.push(`the caller was told ${JSON.stringify(told ?? "nothing")}`);
  if (elapsedMs < afterMs) problems.push(`after only ${elapsedMs} ms`);
  // A frozen worker cannot confirm the kill; the caller waits for that a little while, then says so.
  if (elapsedMs > afterMs + 9000) problems.push(`after ${elapsedMs} ms`);
  return problems;
}

export function capProblems(r: Pick<ExecResult, "stdout" | "truncated">, cap: number): string[] {
  const problems: string[] = [];
  if (!r.truncated) problems.push("it is not marked as truncated");
  if (r.stdout.length < cap) problems.push(`less than the cap arrived: ${r.stdout.length}`);
  if (r.stdout.length > cap + 64) problems.push(`more than cap and marker arrived: ${r.stdout.length}`);
  if (!r.stdout.toString().endsWith("[output truncated]")) problems.push("the marker is missing");
  return problems;
}

/** A command whose link was lost: it ended well, its effect is there once. */
export function onceProblems(result: Pick<ExecResult, "exitCode" | "stdout" | "deliveries"> | undefined, error: Error | undefined, lines: string): string[] {
  const problems: string[] = [];
  if (error) problems.push(`it failed: ${error.message}`);
  if (result && result.exitCode !== 0) problems.push(`exit code ${result.exitCode}`);
  if (result && result.stdout.toString() !== "running\n1\n") problems.push(`output ${JSON.stringify(result.stdout.toString().slice(0, 80))}: lost or doubled`);
  if (lines !== "1") problems.push(`the effect happened ${lines} times`);
  if (result && result.deliveries < 2) problems.push("it was never redelivered: the link was not lost");
  return problems;
}
