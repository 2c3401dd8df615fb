import fc from "fast-check";
import { expect, it } from "vitest";
import { CreditLedger } from "./credit";

it("grants in quarters of the window, exactly what was taken", () => {
  const ledger = new CreditLedger(1000);
  expect([ledger.taken(100), ledger.taken(149), ledger.taken(1), ledger.taken(250)]).toEqual([0, 0, 250, 250]);
});

it("never lets a worker starve, nor exceed its window, whatever the sizes of chunks", () => {
  const window = 65_536;
  fc.assert(fc.property(fc.array(fc.integer({ min: 1, max: 32_768 }), { maxLength: 200 }), (sizes) => {
    const ledger = new CreditLedger(window);
    let credit = window;
    for (const size of sizes) {
      // A worker that waits for room for its whole chunk always finds it once everything before was taken.
      expect(credit).toBeGreaterThanOrEqual(size);
      credit -= size;
      credit += ledger.taken(size);
      expect(credit).toBeLessThanOrEqual(window);
    }
  }));
});
