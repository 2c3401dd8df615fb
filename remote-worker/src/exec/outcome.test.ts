import { expect, it } from "vitest";
import { terminalFrame } from "./frames";
import { fingerprint } from "./fingerprint";
import { cachedForBase, failure, outcomeOf, type Outcome } from "./outcome";

const REST = { stdoutBytes: 1, stderrBytes: 2, stdoutTruncated: false, stderrTruncated: true, durationMs: 3.6 };
const KILL = { found: 2, killed: 2, remaining: 0, verified: true, detail: "" };

it.each<[string, Parameters<typeof outcomeOf>[0], Parameters<typeof outcomeOf>[1], Partial<Outcome>]>([
  ["exit 0", { code: 0 }, undefined, { kind: "end", exitCode: 0, signal: "" }],
  ["exit 255", { code: 255 }, undefined, { kind: "end", exitCode: 255 }],
  ["another signal", { signal: "SIGTERM" }, undefined, { kind: "end", exitCode: -1, signal: "SIGTERM" }],
  ["abort", { signal: "SIGKILL" }, { why: "abort" }, { kind: "end", exitCode: -1, signal: "SIGKILL" }],
  ["abort before the start", undefined, { why: "abort" }, { kind: "end", exitCode: -1 }],
  ["timeout", { signal: "SIGKILL" }, { why: "timeout", seconds: 5 }, { kind: "error", message: "timeout:5", code: "timeout" }],
  ["timeout of what cannot be killed", undefined, { why: "timeout", seconds: 5 }, { kind: "error", message: "timeout:5" }],
  ["a timeout after the leader's end", { code: 3 }, { why: "timeout", seconds: 5 }, { kind: "end", exitCode: 3 }],
  ["an abort after the leader's end", { code: 0 }, { why: "abort" }, { kind: "end", exitCode: 0 }],
])("%s", (_, exit, stop, expected) => {
  expect(outcomeOf(exit, stop, { ...REST, kill: KILL })).toMatchObject(expected);
});

it("says why when nobody listened", () => {
  expect(outcomeOf({ signal: "SIGKILL" }, { why: "unheard", ms: 30_000 }, { ...REST, kill: KILL }).kill?.detail).toBe("nobody listened for 30000 ms");
});

it("caches for a base caller what upstream caches", () => {
  const end = (exitCode: number) => outcomeOf(exitCode < 0 ? { signal: "SIGKILL" } : { code: exitCode }, undefined, REST);
  expect([end(0), end(7), end(-1), failure("timeout", "timeout:1"), failure("spawn", "start bash: x"), failure("busy", "busy: queue full")].map(cachedForBase)).toEqual([true, true, false, true, false, false]);
});

it("sets no field beyond the base for a base relay", () => {
  const o = outcomeOf({ signal: "SIGKILL" }, undefined, { ...REST, kill: KILL });
  expect(terminalFrame(5n, o, true, false).msg?.value).toMatchObject({ reqId: 5n, exitCode: -1, signal: "", kill: undefined, replayed: false, stderrTruncated: false, stdoutBytes: 0n, durationMs: 0n });
  expect(terminalFrame(5n, o, true, true).msg?.value).toMatchObject({ signal: "SIGKILL", kill: KILL, replayed: true, stderrTruncated: true, stdoutBytes: 1n, durationMs: 4n });
  expect(terminalFrame(5n, failure("busy", "busy: queue full"), false, false).msg?.value).toMatchObject({ message: "busy: queue full", code: "" });
});

it("fingerprints by content, with lengths, so that parts cannot run into each other", () => {
  const f = (command: string, stdin = "", timeoutS = 0, streaming = true) => fingerprint({ command, stdin: Buffer.from(stdin), timeoutS, streaming });
  const all = [f("ab", "c"), f("a", "bc"), f("ab", ""), f("ab", "c", 1), f("ab", "c", 0, false), f("abc")];
  expect(new Set(all).size).toBe(all.length);
  expect(f("ab", "c")).toBe(f("ab", "c"));
});
