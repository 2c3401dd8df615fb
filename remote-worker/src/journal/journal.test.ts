import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLogger } from "@dialout/common";
import { failure, outcomeOf } from "../exec/outcome";
import { Journal, JOURNAL_LIMITS } from "./journal";
import { decodeRecord, encodeRecord, parseJournal } from "./records";

let dir: string;
const open: Journal[] = [];
beforeEach(() => (dir = mkdtempSync(path.join(tmpdir(), "journal-"))));
afterEach(() => {
  for (const j of open.splice(0)) j.close();
  rmSync(dir, { recursive: true, force: true });
});

const log = createLogger("test", "silent");
const journal = (limits = {}, now?: () => number) => {
  const j = new Journal(dir, log, { ...JOURNAL_LIMITS, ...limits }, now);
  open.push(j);
  return j;
};
const marks = { env: "m", leader: { pid: 1, start: 2 } };
const start = (j: Journal, key: string, fp = "f") => j.started({ t: "started", key, fp, marks });
const END = outcomeOf({ code: 7 }, undefined, { stdoutBytes: 3, stderrBytes: 0, stdoutTruncated: false, stderrTruncated: false, durationMs: 1 });
const finish = (j: Journal, key: string, stdout: { bytes: number; base64?: string; file?: string } = { bytes: 0 }, fp = "f") => j.finished({ t: "finished", key, fp, outcome: END, stdout, stderr: { bytes: 0 } });
const file = () => path.join(dir, "journal");

describe("after a restart", () => {
  it("knows finished commands with their outcome and output, and the same identity", async () => {
    const a = journal();
    await start(a, "x");
    finish(a, "x", { bytes: 3, base64: "YWJj" });
    const b = journal();
    expect(b.id).toBe(a.id);
    expect(b.find("x")).toEqual({ state: "finished", fp: "f", outcome: END, stdout: { bytes: 3, base64: "YWJj" }, stderr: { bytes: 0 } });
    expect(b.interrupted).toEqual([]);
    expect(b.find("y")).toBeUndefined();
  });

  it("calls a command without an outcome interrupted and keeps its marks", async () => {
    await start(journal(), "x");
    const b = journal();
    expect(b.find("x")).toEqual({ state: "interrupted", fp: "f" });
    expect(b.interrupted).toMatchObject([{ key: "x", marks }]);
    expect(journal().find("x")).toMatchObject({ state: "interrupted" });
  });

  it("has forgotten what was forgotten", async () => {
    const a = journal();
    await start(a, "x");
    a.forget("x");
    expect([a.find("x"), journal().find("x")]).toEqual([undefined, undefined]);
  });

  it("takes an id afresh: the later record counts", async () => {
    const a = journal();
    await start(a, "x", "one");
    finish(a, "x", { bytes: 0 }, "one");
    await start(a, "x", "two");
    expect(journal().find("x")).toEqual({ state: "interrupted", fp: "two" });
  });
});

describe("a torn write", () => {
  it.each([1, 5, 20, 60])("with %i bytes missing drops that record alone, and the next records are whole", async (missing) => {
    const a = journal();
    await start(a, "x");
    await start(a, "y");
    truncateSync(file(), statSync(file()).size - missing);
    const b = journal();
    expect([b.id, b.find("x")?.state, b.find("y")]).toEqual([a.id, "interrupted", undefined]);
    await start(b, "z");
    expect(journal().find("z")?.state).toBe("interrupted");
  });

  it("of garbage at the end is dropped too", async () => {
    const a = journal();
    await start(a, "x");
    appendFileSync(file(), "\0\0\0garbage\nmore");
    expect(journal().id).toBe(a.id);
    expect(readFileSync(file(), "utf8")).not.toContain("garbage");
  });
});

it("damage in the middle changes the identity, since a started command may be among what is lost", async () => {
  const a = journal();
  await start(a, "x");
  await start(a, "y");
  const data = readFileSync(file());
  data[20] = data[20]! ^ 1;
  writeFileSync(file(), data);
  const b = journal();
  expect(b.id).not.toBe(a.id);
  expect(b.find("y")?.state).toBe("interrupted");
});

describe("bounds", () => {
  it("gives up the oldest output first and still knows the outcome", async () => {
    const j = journal({ outputBytes: 100 });
    for (const key of ["a", "b", "c"]) {
      const name = `${key}.stdout`;
      writeFileSync(path.join(j.outputDir, name), "x".repeat(40));
      await start(j, key);
      finish(j, key, { bytes: 40, file: name });
    }
    expect(j.find("a")).toMatchObject({ state: "finished", outcome: END, stdout: { bytes: 40 } });
    expect(j.find("a")).not.toHaveProperty("stdout.file");
    expect(existsSync(path.join(j.outputDir, "a.stdout"))).toBe(false);
    expect(j.find("c")).toMatchObject({ stdout: { file: "c.stdout" } });
  });

  it("forgets ids by age and, once they are old enough, by number; never one that runs", async () => {
    let now = 0;
    const j = journal({ entries: 2, minAgeMs: 1000, maxAgeMs: 5000 }, () => now);
    await start(j, "running");
    for (const key of ["a", "b", "c"]) {
      await start(j, key);
      finish(j, key);
    }
    expect(j.find("a")).toBeDefined();
    now = 1001;
    await start(j, "d");
    expect([j.find("a"), j.find("b"), j.find("running")?.state, j.find("d")?.state]).toEqual([undefined, undefined, "started", "started"]);
    now = 6000;
    await start(j, "e");
    expect([j.find("c"), j.find("running")?.state]).toEqual([undefined, "started"]);
  });

  it("rewrites a log that is mostly stale and loses nothing by it", async () => {
    const j = journal({ compactBytes: 2000 });
    await start(j, "keep");
    finish(j, "keep", { bytes: 3, base64: "YWJj" });
    for (let i = 0; i < 60; i++) {
      await start(j, `k${i}`);
      j.forget(`k${i}`);
    }
    expect(statSync(file()).size).toBeLessThan(4000);
    expect(j.find("keep")).toMatchObject({ outcome: END, stdout: { base64: "YWJj" } });
    expect(journal().find("keep")).toMatchObject({ outcome: END });
  });

  it("removes output files that no record names", () => {
    const j = journal();
    writeFileSync(path.join(j.outputDir, "stray"), "x");
    journal();
    expect(existsSync(path.join(j.outputDir, "stray"))).toBe(false);
  });
});

it("many starts at once share their syncs and are all there", async () => {
  const j = journal();
  await Promise.all(Array.from({ length: 200 }, (_, i) => start(j, `k${i}`)));
  expect(journal().interrupted).toHaveLength(200);
});

describe("records", () => {
  it("round-trip, and one flipped bit is noticed", () => {
    const line = encodeRecord({ t: "finished", key: "ü\n", fp: "f", outcome: failure("timeout", "timeout:1"), stdout: { bytes: 0 }, stderr: { bytes: 0 } }).toString("utf8").slice(0, -1);
    expect(decodeRecord(line)).toMatchObject({ key: "ü\n" });
    for (let i = 0; i < line.length; i++) expect(decodeRecord(line.slice(0, i) + String.fromCharCode(line.charCodeAt(i) ^ 1) + line.slice(i + 1))).toBeUndefined();
  });
  it("an empty journal is neither torn nor damaged", () => {
    expect(parseJournal(Buffer.alloc(0))).toEqual({ records: [], good: 0, damaged: 0 });
  });
});
