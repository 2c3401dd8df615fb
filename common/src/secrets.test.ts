import { expect, it } from "vitest";
import { bearerToken, secretMatches } from "./secrets";

it.each([
  ["a", "a", true],
  ["a", "b", false],
  ["", "", false],
  [undefined, undefined, false],
  ["", "a", false],
  ["a", "", false],
  ["a", undefined, false],
])("secretMatches(%j, %j) is %s", (presented, expected, result) => {
  expect(secretMatches(presented, expected)).toBe(result);
});

it.each([
  ["Bearer abc", "abc"],
  ["bearer abc", "abc"],
  ["Bearer ", undefined],
  ["Basic abc", undefined],
  ["Bearer a b", undefined],
  [undefined, undefined],
])("bearerToken(%j) is %j", (header, token) => {
  expect(bearerToken(header)).toBe(token);
});
