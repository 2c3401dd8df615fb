import { expect, it } from "vitest";
import { Backoff } from "./backoff";

it("doubles to its bound, adds up to half at random, and starts anew", () => {
  const plain = new Backoff(500, 4_000, () => 0), most = new Backoff(500, 4_000, () => 1);
  expect([1, 2, 3, 4, 5].map(() => plain.next())).toEqual([500, 1_000, 2_000, 4_000, 4_000]);
  expect([1, 2].map(() => most.next())).toEqual([750, 1_500]);
  plain.reset();
  expect(plain.next()).toBe(500);
});

it("one pause may be bounded further, and goes on counting", () => {
  const b = new Backoff(500, 30_000, () => 0);
  expect([b.next(), b.next(800), b.next(800), b.next()]).toEqual([500, 800, 800, 4_000]);
});
