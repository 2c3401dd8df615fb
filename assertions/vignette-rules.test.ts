import { describe, expect, it } from "vitest";
import { capProblems, goneProblems, onceProblems, spreadProblems, timeoutProblems } from "./vignette-rules";

const LINES = "line 1\nline 2\nline 3\nline 4\nline 5\n";

describe("streaming", () => {
  it("holds for arrivals spread over the writing", () => expect(spreadProblems([0, 400, 800, 1200, 1600], LINES)).toEqual([]));
  it.each<[string, number[], string]>([["one burst", [1600, 1600, 1601, 1601, 1602], LINES], ["one chunk", [1600], LINES], ["nothing", [], ""], ["a lost line", [0, 400, 800, 1600], "line 1\n"]])("does not for %s", (_w, times, out) => {
    expect(spreadProblems(times, out).length).toBeGreaterThan(0);
  });
});

describe("abort", () => {
  const aborted = (kill: object) => Object.assign(new Error("aborted"), { kill: { verified: true, remaining: 0, ...kill } });
  it("holds when both ran and neither goes on", () => expect(goneProblems(aborted({}), [10, 12], [10, 12])).toEqual([]));
  it.each<[string, Parameters<typeof goneProblems>, RegExp]>([
    ["a survivor", [aborted({}), [10, 12], [10, 40]], /process 2 lives on/],
    ["a process that never ran", [aborted({}), [0, 12], [0, 12]], /process 1 never ran/],
    ["an unverified kill", [aborted({ verified: false }), [1, 1], [1, 1]], /not verified/],
    ["something left", [aborted({ remaining: 1 }), [1, 1], [1, 1]], /not verified/],
    ["another outcome", [Object.assign(new Error("disconnected"), { kill: { verified: true, remaining: 0 } }), [1, 1], [1, 1]], /"disconnected"/],
    ["no outcome", [undefined, [1, 1], [1, 1]], /nothing/],
  ])("does not for %s", (_w, args, why) => {
    expect(goneProblems(...args).join("; ")).toMatch(why);
  });
});

describe("timeouts", () => {
  it("hold when told in time", () => expect(timeoutProblems("timeout:1", "timeout:1", 1300, 1000)).toEqual([]));
  it.each<[string, string | undefined, number]>([["too early", "timeout:1", 900], ["too late", "timeout:1", 11_000], ["another text", "aborted", 1300], ["nothing", undefined, 1300]])("do not when %s", (_w, told, ms) => {
    expect(timeoutProblems(told, "timeout:1", ms, 1000)).toHaveLength(1);
  });
});

describe("cap", () => {
  const r = (n: number, truncated = true, marker = "\n[output truncated]") => ({ stdout: Buffer.from("y".repeat(n) + marker), truncated });
  it("holds for cap and marker", () => expect(capProblems(r(100), 100)).toEqual([]));
  it.each([["no field", r(100, false)], ["no marker", r(100, true, "")], ["far too much", r(200)], ["less than the cap", r(10)]])("does not for %s", (_w, result) => {
    expect(capProblems(result, 100).length).toBeGreaterThan(0);
  });
});

describe("once", () => {
  const good = { exitCode: 0, stdout: Buffer.from("running\n1\n"), deliveries: 2 };
  it("holds for one effect and whole output over two deliveries", () => expect(onceProblems(good, undefined, "1")).toEqual([]));
  it.each<[string, Parameters<typeof onceProblems>]>([
    ["two effects", [good, undefined, "2"]],
    ["no effect", [good, undefined, "0"]],
    ["an error", [undefined, new Error("disconnected"), "1"]],
    ["lost output", [{ ...good, stdout: Buffer.from("1\n") }, undefined, "1"]],
    ["doubled output", [{ ...good, stdout: Buffer.from("running\nrunning\n1\n") }, undefined, "1"]],
    ["a link that was never lost", [{ ...good, deliveries: 1 }, undefined, "1"]],
    ["another exit code", [{ ...good, exitCode: 1 }, undefined, "1"]],
  ])("does not for %s", (_w, args) => {
    expect(onceProblems(...args)).toHaveLength(1);
  });
});
