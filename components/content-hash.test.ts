import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { contentHash, copiedPaths } from "./content-hash";

let dir: string;
const write = (file: string, text: string) => {
  mkdirSync(path.dirname(path.join(dir, file)), { recursive: true });
  writeFileSync(path.join(dir, file), text);
};
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), "hash-"));
  write("Dockerfile", "FROM x\nCOPY --chown=1:1 dist/main.cjs lib /app/\nCOPY --from=tools /bin/a /bin/a\n");
  write("dist/main.cjs", "1");
  write("lib/a.js", "a");
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

it("reads COPY and ADD in all their forms, without other stages", () => {
  expect(copiedPaths('COPY a b /x/\nADD --chmod=0755 c \\\n  /y\ncopy ["d e", "/z"]\nCOPY --from=s f /f\n# COPY g /g\nRUN echo COPY h /h')).toEqual(["a", "b", "c", "d e"]);
});

it("is stable, 12 hex digits, and changes with everything that reaches the image", () => {
  const args = { BASE_IMAGE: "x" };
  const first = contentHash(dir, args);
  expect(first).toMatch(/^[0-9a-f]{12}$/);
  expect(contentHash(dir, args)).toBe(first);
  const seen = new Set([first, contentHash(dir, { BASE_IMAGE: "y" })]);
  for (const change of [() => write("dist/main.cjs", "2"), () => write("lib/b.js", ""), () => chmodSync(path.join(dir, "lib/a.js"), 0o755), () => write("Dockerfile", "FROM x\nCOPY dist/main.cjs lib /app/\n")]) {
    change();
    seen.add(contentHash(dir, args));
  }
  expect(seen.size).toBe(6);
});

it("ignores files that no line copies", () => {
  const first = contentHash(dir, {});
  write("src/main.test.ts", "x");
  expect(contentHash(dir, {})).toBe(first);
});
