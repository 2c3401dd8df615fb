import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
// @ts-expect-error -- plain JavaScript: it runs on machines that have nothing but Node.js
import * as mending from "./mend-state.mjs";

const mend = mending.mend as (backend: string, at: { host: string; alive: (pid: number) => boolean }) => string[];
let backend: string;
const stacks = () => path.join(backend, ".pulumi/stacks/dialout"), locks = () => path.join(backend, ".pulumi/locks/organization/dialout/lab");
const put = (dir: string, files: Record<string, string>) => {
  mkdirSync(dir, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(dir, name), text);
};
const lock = (pid: number, hostname = "here") => put(locks(), { "1.json": JSON.stringify({ pid, hostname }), "1.json.attrs": "{}" });
const run = () => mend(backend, { host: "here", alive: (pid) => pid === 1 });
beforeEach(() => void (backend = mkdtempSync(path.join(tmpdir(), "mend-"))));
afterEach(() => rmSync(backend, { recursive: true }));

it("half an `.attrs` goes, the state stays, the lock goes", () => {
  put(stacks(), { "lab.json": '{"v":2}', "lab.json.attrs": "", "lab.json.bak": '{"v":1}', "lab.json.bak.attrs": "{}", "lab.json.1.tmp": "x", "lab2.json.attrs": "" });
  lock(99);
  expect(run()).toEqual([expect.stringContaining("process 99")]);
  expect(readdirSync(stacks()).sort()).toEqual(["lab.json", "lab.json.bak", "lab.json.bak.attrs", "lab2.json.attrs"]);
  expect(readFileSync(path.join(stacks(), "lab.json"), "utf8")).toBe('{"v":2}');
  expect(readdirSync(locks())).toEqual([]);
});

it.each([["missing", undefined], ["half", '{"v":']])("a state that is %s comes back from before", (_, text) => {
  put(stacks(), { "lab.json.bak": '{"v":1}', ...(text === undefined ? {} : { "lab.json": text }) });
  lock(99);
  expect(run()[0]).toContain("'lab' was cut");
  expect(readFileSync(path.join(stacks(), "lab.json"), "utf8")).toBe('{"v":1}');
});

it.each([["a process that lives", 1, "here"], ["another machine", 99, "there"]])("the lock of %s is left alone, and so is the stack", (_, pid, host) => {
  put(stacks(), { "lab.json.bak": '{"v":1}' });
  lock(pid, host);
  expect(run()).toEqual([]);
  expect([existsSync(path.join(stacks(), "lab.json")), readdirSync(locks()).length]).toEqual([false, 2]);
});

it.runIf(existsSync("/proc/self/stat"))("a number that another program has now is no pulumi, nor is one that is free", () => {
  const lives = mending.lives as (pid: number) => boolean;
  expect([lives(process.pid), lives(2 ** 22)]).toEqual([false, false]);
});

it("a stack that was removed stays removed: without a lock nothing was cut", () => {
  put(stacks(), { "lab.json.bak": '{"v":1}' });
  expect(run()).toEqual([]);
  expect(readdirSync(stacks())).toEqual(["lab.json.bak"]);
});
