import { expect, test } from "vitest";
import { formatDuration, parseDuration } from "./duration";

test.each([["0s", 0], ["5s", 5e9], ["1m30s", 90e9], ["1h0m0s", 3600e9], ["500ms", 5e8], ["1.5s", 1.5e9], ["100µs", 1e5], ["7ns", 7]])("%s", (text, nanoseconds) => {
  expect(parseDuration(text)).toBe(nanoseconds);
  expect(formatDuration(nanoseconds)).toBe(text);
});

test.each(["", "5", "s", "5 s", "1d", "5s "])("'%s' is no duration", (text) => {
  expect(parseDuration(text)).toBeNaN();
});
