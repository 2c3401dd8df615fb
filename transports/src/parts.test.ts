import { describe, expect, it } from "vitest";
import { RequestIds } from "./ids";
import { limitsOf } from "./options";
import { CappedBuffer, Output } from "./output";

describe("RequestIds", () => {
  it("never passes 2^53-1", () => {
    const ids = new RequestIds((max) => max - 1, 2 ** 32 - 1);
    expect(ids.next()).toBe(2n ** 53n - 1n);
  });

  it("takes a new salt instead of repeating a used-up counter", () => {
    const salts = [1, 2];
    const ids = new RequestIds(() => salts.shift() as number, 2 ** 32 - 1);
    expect([ids.next() >> 32n, ids.next() >> 32n]).toEqual([1n, 2n]);
  });

  it("keeps processes apart by salt", () => {
    expect(new RequestIds(() => 5).next()).not.toBe(new RequestIds(() => 6).next());
  });
});

describe("limitsOf", () => {
  it("fills in the contract's defaults", () => {
    expect(limitsOf("c", {})).toEqual({ timeout: 1800, cap: 8388608 });
  });
  it.each([-1, NaN, Infinity, 3e6])("refuses timeout %s", (timeout) => {
    expect(() => limitsOf("c", { timeout })).toThrow(/^timeout .* from 0 \(no limit\)/);
  });
  it.each([-1, 1.5, NaN])("refuses outputCap %s", (outputCap) => {
    expect(() => limitsOf("c", { outputCap })).toThrow(/^outputCap/);
  });
  it.each(["", "a\0b"])("refuses command %j", (command) => {
    expect(() => limitsOf(command, {})).toThrow(/^command/);
  });
});

describe("CappedBuffer", () => {
  it("counts everything and keeps no more than the cap", () => {
    const b = new CappedBuffer(3);
    expect([b.add(Buffer.from("ab")), b.add(Buffer.from("cd")), b.add(Buffer.from("e"))].map(String)).toEqual(["ab", "c", ""]);
    expect(b.total).toBe(5);
    expect(b.result().toString()).toBe("abc\n[output truncated]");
  });
});

describe("Output", () => {
  it("tells the marker once, after the last kept byte, however the cut was noticed", () => {
    let told = "";
    const o = new Output(2, (c) => void (told += c));
    void o.add(Buffer.from("abc"), "stdout");
    void o.add(Buffer.from("d"), "stdout");
    void o.markCut("stdout");
    expect(told).toBe("ab\n[output truncated]");
    expect(o.truncated).toBe(true);
  });
});
