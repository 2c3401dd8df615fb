import { execFileSync, spawnSync } from "node:child_process";
import path from "node:path";
import { expect, it } from "vitest";

const table = path.join(__dirname, "table.mjs");
const run = (input: string) => spawnSync(process.execPath, [table], { input, encoding: "utf8" });
const outputs = {
  proof: "passed", transport: "pods", tunnel: "network", model: "scripted",
  verdicts: [{ arm: "pods", pattern: "Alpine", expected: "FLAGGED", verdict: "FLAGGED", reason: "line 1\nsays Alpine", sandbox: { kind: "pod", name: "p" }, elapsedMs: 12 }],
  evidence: [{ check: "marker", expected: "abc", seen: "xyz", ok: false }],
  next: ["./demo flip remote"],
};

it("prints verdicts, evidence and the next command, and exits by the proof", () => {
  const r = run(JSON.stringify(outputs));
  expect(r.status).toBe(0);
  for (const text of ["pods", "FLAGGED", "line 1 says Alpine", "FAIL", "expected abc; seen xyz", "./demo flip remote"]) expect(r.stdout).toContain(text);
  expect(run(JSON.stringify({ ...outputs, proof: "failed" })).status).toBe(1);
  expect(run("{}").status).toBe(1);
});

it("says what to do with input that is not JSON, without a stack trace", () => {
  const r = run("nope");
  expect(r.status).toBe(1);
  expect(r.stderr).toMatch(/not the stack's outputs.*\.\/demo outputs/);
  expect(r.stderr).not.toContain("    at ");
});

const root = path.resolve(__dirname, "../..");
const demo = (args: string[], env: Record<string, string> = {}) =>
  spawnSync(path.join(root, "demo"), args, { encoding: "utf8", env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent", ...env } });

it("help needs nothing installed", () => {
  const bare = execFileSync("/usr/bin/env", ["-i", "PATH=/usr/bin:/bin", path.join(root, "demo"), "--help"], { encoding: "utf8" });
  expect(bare).toMatch(/usage: \.\/demo/);
});

it.each([
  [["frobnicate"], "frobnicate"],
  [["flip", "sideways"], "pods or remote"],
  [["prove", "--nope"], "--vignettes"],
  [["test", "nosuite"], "nosuite"],
  [["outputs", "x"], "no options"],
])("refuses %j with exit code 3 and the next command", (args, text) => {
  const r = demo(args);
  expect(r.status).toBe(3);
  expect(r.stderr).toContain(text);
  expect(r.stderr).toContain("./demo --help");
});

it("refuses an unknown mode and an odd stack name", () => {
  expect(demo(["doctor"], { DIALOUT_MODE: "cloud" }).status).toBe(3);
  expect(demo(["doctor"], { DIALOUT_MODE: "lab", DIALOUT_STACK: "a b" }).status).toBe(3);
});
