import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { globRegExp } from "./glob";
import { find, grep } from "./search";
import { scratch, type Scratch } from "./testkit";

const hasRg = spawnSync("rg", ["--version"]).status === 0;
/** Hides rg: `command -v` is what the commands ask. */
const NO_RG = `command() { [ "$2" != rg ] && builtin command "$@"; }\n`;

describe.each([["without rg", NO_RG, true], ["with rg", "", hasRg]])("%s", (_, prefix, available) => {
  let box: Scratch;
  const put = (name: string, text: string) => {
    mkdirSync(path.dirname(box.path(name)), { recursive: true });
    writeFileSync(box.path(name), text);
  };
  beforeEach(() => {
    box = scratch(prefix);
    put("src/a.ts", "import x\nconst needle = 1;\nexport {}\n");
    put("src/deep/b.ts", "needle needle\n");
    put("src/deep/it's.md", "a Needle (here)\n");
    put(".hidden/c.ts", "needle\n");
    put(".git/d.ts", "needle\n");
    put("bin.dat", "needle\0needle\n");
  });
  afterEach(() => box.remove());
  const cases = available ? it : it.skip;
  const relative = (text: string) => text.split("\n").map((l) => l.replace(`${box.cwd}/`, "")).sort();

  cases("find: a glob without slash matches at any depth; .git is left out, hidden files are not", async () => {
    expect((await find(box, { pattern: "*.ts" })).split("\n")).toEqual([".hidden/c.ts", "src/a.ts", "src/deep/b.ts"]);
  });

  cases("find: a glob with a slash is anchored, ** crosses folders, braces work", async () => {
    expect(await find(box, { pattern: "src/*.ts" })).toBe("src/a.ts");
    expect((await find(box, { pattern: "src/**/*.{ts,md}" })).split("\n")).toEqual(["src/a.ts", "src/deep/b.ts", "src/deep/it's.md"]);
  });

  cases("find: says when nothing matches, where a path is missing, and when it was cut", async () => {
    expect(await find(box, { pattern: "*.py" })).toBe("No files found matching pattern");
    await expect(find(box, { pattern: "*", path: "nope" })).rejects.toThrow(/Path not found in pod/);
    await expect(find(box, { pattern: "*", path: "bin.dat" })).rejects.toThrow(/Not a directory/);
    expect(await find(box, { pattern: "*.ts", limit: 1 })).toMatch(/\n\n\[only the first 1 matches/);
  });

  cases("grep: path:line:text, binary files and .git left out", async () => {
    expect(relative(await grep(box, { pattern: "needle" }))).toEqual([".hidden/c.ts:1:needle", "src/a.ts:2:const needle = 1;", "src/deep/b.ts:1:needle needle"]);
  });

  cases("grep: one file has the same form", async () => {
    expect(relative(await grep(box, { pattern: "needle", path: "src/a.ts" }))).toEqual(["src/a.ts:2:const needle = 1;"]);
  });

  cases("grep: options", async () => {
    expect(relative(await grep(box, { pattern: "NEEDLE (", literal: true, ignoreCase: true }))).toEqual(["src/deep/it's.md:1:a Needle (here)"]);
    expect(relative(await grep(box, { pattern: "needle|Needle", glob: "*.md" }))).toEqual(["src/deep/it's.md:1:a Needle (here)"]);
    expect(relative(await grep(box, { pattern: "needle", glob: "src/deep/*.ts" }))).toEqual(["src/deep/b.ts:1:needle needle"]);
    expect(relative(await grep(box, { pattern: "needle", path: "src/a.ts", context: 1 }))).toEqual(["src/a.ts-1-import x", "src/a.ts-3-export {}", "src/a.ts:2:const needle = 1;"]);
    expect(await grep(box, { pattern: "needle", limit: 1 })).toMatch(/\n\n\[only the first 1 lines/);
  });

  cases("grep: nothing found is an answer, a bad expression and a missing path are errors", async () => {
    expect(await grep(box, { pattern: "haystack" })).toBe("No matches found");
    expect(await grep(box, { pattern: "-e" })).toBe("No matches found");
    await expect(grep(box, { pattern: "a(" })).rejects.toThrow(/grep failed: .+/);
    await expect(grep(box, { pattern: "x", path: "nope" })).rejects.toThrow(/Path not found in pod/);
  });
});

describe("globRegExp", () => {
  it.each([
    ["*.ts", "a.ts", true],
    ["*.ts", "d/a.ts", true],
    ["*.ts", "a.tsx", false],
    ["src/*.ts", "src/a.ts", true],
    ["src/*.ts", "src/d/a.ts", false],
    ["src/*.ts", "x/src/a.ts", false],
    ["/src/*.ts", "src/a.ts", true],
    ["**/a", "a", true],
    ["**/a", "x/y/a", true],
    ["src/**", "src/x/y", true],
    ["a?c", "abc", true],
    ["a?c", "a/c", false],
    ["[!a]b", "cb", true],
    ["[!a]b", "ab", false],
    ["{a,b}.x", "b.x", true],
    ["a.b", "axb", false],
    ["a\\*b", "a*b", true],
    ["a\\*b", "axb", false],
    ["[x", "[x", true],
  ])("%s against %s: %s", (glob, name, expected) => {
    expect(globRegExp(glob).test(name)).toBe(expected);
  });

  it("refuses an open brace", () => expect(() => globRegExp("{a")).toThrow(/without/));
});
