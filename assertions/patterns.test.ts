import { describe, expect, it } from "vitest";
import { ALPINE, DEBIAN_12, DEBIAN_13, RED_HAT } from "./fakes";
import { choosePatterns, fingerprints, parseOsRelease, patternProblems, tells, unmistakable } from "./patterns";

describe("choosePatterns", () => {
  it("takes the usual names where they tell", () => {
    expect(choosePatterns(ALPINE, RED_HAT)).toEqual({ patterns: { pods: "Alpine", remote: "Red Hat" }, problems: [] });
  });
  it("falls back, side by side, to what tells", () => {
    expect(choosePatterns(DEBIAN_12, DEBIAN_13).patterns).toEqual({ pods: "bookworm", remote: "trixie" });
    expect(choosePatterns(ALPINE, DEBIAN_13).patterns).toEqual({ pods: "Alpine", remote: "Debian GNU/Linux" });
  });
  it("uses fixed patterns as they are, or refuses them", () => {
    expect(choosePatterns(DEBIAN_12, DEBIAN_13, { pods: "12 (bookworm)" }).patterns).toEqual({ pods: "12 (bookworm)", remote: "trixie" });
    expect(choosePatterns(DEBIAN_12, DEBIAN_13, { pods: "Debian" }).problems).toEqual(['pods pattern "Debian" is in the worker\'s os-release as well']);
    expect(choosePatterns(DEBIAN_12, DEBIAN_13, { remote: "Alpine" }).problems).toEqual(['remote pattern "Alpine" is not in the worker\'s os-release']);
  });
  it("has none for two sides that are the same, or when one side has nothing of its own", () => {
    expect(choosePatterns(RED_HAT, RED_HAT).problems[0]).toMatch(/same os-release/);
    expect(choosePatterns("NAME=Thing\n", "NAME=Thing\nVERSION_CODENAME=only-here\n").problems[0]).toMatch(/no text tells the pod/);
  });
});

describe("tells", () => {
  it.each([["Alpine", true], ["alpine", true], ["Red", false], ["", false], ["  ", false], ["ID", false], ["Al", false]])("%j: %s", (pattern, yes) => {
    expect(tells(pattern, ALPINE, RED_HAT)).toBe(yes);
  });
  it("does not rely on case to tell two files apart", () => {
    expect(tells("Thing", "NAME=Thing", "NAME=thing")).toBe(false);
  });
});

it("names every broken pattern of a pair", () => {
  expect(patternProblems({ pods: "NAME", remote: "x" }, ALPINE, RED_HAT)).toHaveLength(2);
  expect(patternProblems({ pods: "Red Hat", remote: "Alpine" }, ALPINE, RED_HAT)).toHaveLength(2);
});

it("reads os-release with and without quotes, and skips what is none", () => {
  expect([...parseOsRelease(`A="x y"\n B='z'\n# C=1\nD=\nlower=1\nE=a=b`)]).toEqual([["A", "x y"], ["B", "z"], ["D", ""], ["E", "a=b"]]);
});

it("takes for fingerprints only what the other file does not hold, the longest first", () => {
  const prints = fingerprints(DEBIAN_12, DEBIAN_13);
  expect(prints[0]).toBe('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"');
  expect(prints).not.toContain("Debian GNU/Linux");
  expect(prints.every((p) => !DEBIAN_13.includes(p))).toBe(true);
  expect(unmistakable(fingerprints(ALPINE, RED_HAT))).not.toContain("Alpine Linux");
});
