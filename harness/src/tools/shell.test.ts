import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { quote, sandboxPath } from "./shell";

// Mostly what a shell would act on, and the rest of Unicode.
const word = fc.oneof(fc.string({ unit: fc.constantFrom(..."'\"\\$`!*?#&;|<>(){}[]~ \t\n\r=-a") }), fc.string({ unit: "binary" })).map((s) => s.replaceAll("\0", ""));

describe("quote", () => {
  it("gives bash exactly the text back, whatever it holds", () => {
    fc.assert(
      fc.property(fc.array(word, { minLength: 20, maxLength: 20 }), (words) => {
        const script = `printf '%s\\0' ${words.map(quote).join(" ")}`;
        const out = execFileSync("bash", ["-c", script], { env: { LC_ALL: "C", SHLVL: "1" } });
        const expected = Buffer.concat(words.map((w) => Buffer.from(`${w}\0`)));
        expect(out.equals(expected)).toBe(true);
      }),
      { numRuns: 20 },
    );
  });

  it("refuses NUL", () => expect(() => quote("a\0b")).toThrow(/NUL/));
});

describe("sandboxPath", () => {
  it.each([
    ["/app/src/x.ts", "/workspace/src/x.ts"],
    ["/app", "/workspace"],
    ["/app/../etc/passwd", "/etc/passwd"],
    ["/application/x", "/application/x"],
    ["/etc/os-release", "/etc/os-release"],
    ["src/x.ts", "/workspace/src/x.ts"],
    ["./a/../b", "/workspace/b"],
    [".", "/workspace"],
    ["/app/", "/workspace/"],
  ])("%s is %s", (asked, expected) => {
    expect(sandboxPath(asked, "/app", "/workspace")).toBe(expected);
  });

  it("rewrites nothing when the harness runs in /", () => {
    expect(sandboxPath("/etc/os-release", "/", "/workspace")).toBe("/etc/os-release");
  });
});
