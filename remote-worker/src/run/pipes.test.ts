import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { until } from "@dialout/common/testkit";
import { PipeFolder } from "./pipes";

let dir: string;
let made: string[][];
let folder: PipeFolder;
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), "pipes-"));
  made = [];
  folder = new PipeFolder(path.join(dir, "pipes"), async (files) => {
    made.push(files);
    execFileSync("mkfifo", files);
  });
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

it("carries bytes to one reader, those from before it listened too, and ends when the writer does", async () => {
  const fifo = await folder.take();
  const reader = fifo.reader();
  const writer = fifo.writer();
  fifo.release();
  writer.write("early ");
  await new Promise((r) => setImmediate(r));
  let got = "";
  let closed = false;
  reader.once("close", () => (closed = true));
  reader.deliver((b) => (got += b.toString()));
  writer.end("late");
  await until("the end", () => closed);
  expect(got).toBe("early late");
});

it("keeps two readers apart although they share a buffer, and holds still while paused", async () => {
  const fifos = [await folder.take(), await folder.take()];
  const got = ["", ""];
  const readers = fifos.map((f, i) => {
    const r = f.reader();
    r.deliver((b) => (got[i] += b.toString()));
    return r;
  });
  const writers = fifos.map((f) => f.writer());
  readers[0]?.pause();
  writers.forEach((w, i) => w.end(String(i).repeat(100)));
  await until("the second", () => got[1]?.length === 100);
  expect(got).toEqual(["", "1".repeat(100)]);
  readers[0]?.resume();
  await until("the first", () => got[0]?.length === 100);
  expect(got[0]).toBe("0".repeat(100));
  for (const f of fifos) f.release();
});

it("makes pipes in batches, says why it cannot, and leaves no name behind", async () => {
  for (let i = 0; i < 100; i++) (await folder.take()).release();
  expect(made.length).toBeLessThanOrEqual(3);
  const names = new Set(readdirSync(path.join(dir, "pipes")));
  expect(names.size).toBe(made.flat().length - 100);
  const broken = new PipeFolder(path.join(dir, "other"), () => Promise.reject(new Error("no space left")));
  await expect(broken.take()).rejects.toThrow("no space left");
});
