import { expect, it } from "vitest";
import { percentile, spread, table } from "./stats";

it("takes percentiles by nearest rank, whatever the order", () => {
  const s = Array.from({ length: 100 }, (_, i) => 100 - i);
  expect([percentile(s, 50), percentile(s, 95), percentile(s, 99), percentile(s, 100)]).toEqual([50, 95, 99, 100]);
  expect(percentile([7], 99)).toBe(7);
  expect(() => spread([])).toThrow(/no samples/);
});

it("aligns columns", () => {
  expect(table([["a", "bb"], ["ccc", "1"]])).toBe("a    bb\n---  --\nccc   1");
});
