import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OutputLog, StoredOutput } from "./outputLog";

let dir: string;
beforeEach(() => (dir = mkdtempSync(path.join(tmpdir(), "output-log-"))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const K = 1024;
const LIMITS = { spool: 256 * K, ring: 64 * K, cap: Infinity };
const make = (limits = LIMITS, inline = 4 * K, file = path.join(dir, "out")) => new OutputLog(file, limits, inline);
/** Bytes that tell their position. */
const bytes = (from: number, n: number) => Buffer.from(Uint8Array.from({ length: n }, (_, i) => ((from + i) * 31 + ((from + i) >> 8)) & 255));
const fill = (log: OutputLog, n: number, sent: () => number, step = 1000) => {
  for (let at = log.total; at < n; at += step) log.append(bytes(at, Math.min(step, n - at)), sent());
};
const all = (log: { read(o: number, m: number): Buffer | undefined; produced: number }, from: number) => {
  const parts = [];
  for (let at = from; at < log.produced; ) {
    const part = log.read(at, 32 * K);
    if (!part?.length) return undefined;
    parts.push(part);
    at += part.length;
  }
  return Buffer.concat(parts);
};

describe("OutputLog", () => {
  it.each([0, 1, 32 * K - 1, 32 * K, 32 * K + 1, 200 * K])("gives back %i bytes from any position", (n) => {
    const log = make();
    fill(log, n, () => 0);
    for (const from of [0, 1, n >> 1, Math.max(0, n - 1)]) if (from <= n) expect(all(log, from)?.equals(bytes(from, n - from))).toBe(true);
    expect(log.read(n, 10)).toHaveLength(0);
  });

  it("keeps small output off the disk and larger output whole on it", () => {
    const small = make();
    fill(small, 4 * K, () => 0);
    expect(small.seal()).toEqual({ bytes: bytes(0, 4 * K) });
    expect(existsSync(path.join(dir, "out"))).toBe(false);
    const large = make();
    fill(large, 100 * K, () => 0);
    expect(large.seal()).toEqual({ file: path.join(dir, "out") });
  });

  it("reads ahead without bound while the spool takes it, then a ring's length ahead of the reader", () => {
    const log = make();
    fill(log, 256 * K - 1, () => 0);
    expect(log.wants(0)).toBe(true);
    fill(log, 256 * K + 63 * K, () => 256 * K);
    expect(log.wants(256 * K)).toBe(true);
    fill(log, 256 * K + 64 * K, () => 256 * K);
    expect(log.wants(256 * K)).toBe(false);
    expect(log.wants(256 * K + 1)).toBe(true);
  });

  it("past the spool it holds a ring's length behind the reader, and nothing older", () => {
    const log = make();
    const n = 1024 * K;
    fill(log, n, () => log.produced);
    expect(log.holds(n - 64 * K)).toBe(true);
    expect(all(log, n - 64 * K)?.equals(bytes(n - 64 * K, 64 * K))).toBe(true);
    expect(log.holds(0)).toBe(false);
    expect(log.read(300 * K, 10)).toBeUndefined();
    expect(log.holds(n + 1)).toBe(false);
    expect(log.seal()).toBeUndefined();
  });

  it("never drops what the reader was not sent", () => {
    const log = make();
    fill(log, 320 * K, () => 256 * K);
    expect(all(log, 256 * K)?.equals(bytes(256 * K, 64 * K))).toBe(true);
  });

  it("counts and drops what is above the cap, and goes on wanting", () => {
    const log = make({ ...LIMITS, cap: 10_000 });
    fill(log, 500 * K, () => 0);
    expect([log.produced, log.total, log.truncated, log.wants(0)]).toEqual([10_000, 500 * K, true, true]);
    expect(all(log, 0)?.equals(bytes(0, 10_000))).toBe(true);
  });

  it("is not truncated at exactly the cap", () => {
    const log = make({ ...LIMITS, cap: 10_000 });
    fill(log, 10_000, () => 0);
    expect(log.truncated).toBe(false);
  });

  it("costs memory by bytes, not by writes", () => {
    const log = make({ ...LIMITS, ring: 1024 * K });
    const one = Buffer.from("x");
    const before = process.memoryUsage();
    for (let i = 0; i < 500_000; i++) log.append(one, log.produced);
    const after = process.memoryUsage();
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(4 << 20);
  });

  it("survives a disk that takes nothing: memory serves, and the failure is known", () => {
    const log = make(LIMITS, 4 * K, path.join(dir, "missing", "out"));
    fill(log, 60 * K, () => 0);
    expect(log.failure).toBeDefined();
    expect(all(log, 0)?.equals(bytes(0, 60 * K))).toBe(true);
    expect(log.wants(0)).toBe(true);
    fill(log, 64 * K, () => 0);
    expect(log.wants(0)).toBe(false);
    expect(log.seal()).toBeUndefined();
  });
});

describe("StoredOutput", () => {
  it("reads a file or bytes from any position and knows what is gone", () => {
    const log = make();
    fill(log, 100 * K, () => 0);
    log.seal();
    const file = new StoredOutput({ file: path.join(dir, "out") }, 100 * K);
    expect(all(file, 5)?.equals(bytes(5, 100 * K - 5))).toBe(true);
    file.close();
    expect(all(new StoredOutput({ bytes: bytes(0, 50) }, 50), 7)?.equals(bytes(7, 43))).toBe(true);
    const gone = new StoredOutput(undefined, 10);
    expect([gone.holds(3), gone.holds(10), gone.holds(11), gone.read(3, 5)]).toEqual([false, true, false, undefined]);
    expect(new StoredOutput({ file: path.join(dir, "nope") }, 10).holds(0)).toBe(false);
  });
});
