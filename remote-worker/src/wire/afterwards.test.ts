import { expect, it } from "vitest";
import { afterwards } from "./afterwards";
import type { SessionEnd } from "./session";

const after = (end: Partial<SessionEnd>) => afterwards({ why: "eof", code: 0, details: "details", attachedMs: undefined, welcomed: false, ...end }, "sbx-1", "relay:1");

it("leaves only when another worker took the id over, and says what to do", () => {
  expect(after({ why: "superseded", attachedMs: 60_000 })).toMatchObject({ action: "exit", message: expect.stringContaining("SANDBOX_ID") });
  for (const why of ["connect", "unauthenticated", "invalid", "refused", "eof", "liveness", "error", "closed"] as const) expect(after({ why }).action).toBe("retry");
});

it.each<[Partial<SessionEnd>, boolean]>([
  [{ attachedMs: undefined }, false],
  [{ attachedMs: 1_000 }, false],
  [{ attachedMs: 29_000 }, false],
  [{ attachedMs: 31_000 }, true],
  [{ attachedMs: 4_000, welcomed: true }, false],
  [{ attachedMs: 6_000, welcomed: true }, true],
])("%j: start small again = %s", (end, reset) => {
  expect(after(end).resetBackoff).toBe(reset);
});

it.each([["unauthenticated", "SANDBOX_TOKEN"], ["refused", "SANDBOX_TOKEN"], ["connect", "RELAY_ADDR=relay:1"]] as const)("%s names %s", (why, name) => {
  expect(after({ why }).message).toContain(name);
});
