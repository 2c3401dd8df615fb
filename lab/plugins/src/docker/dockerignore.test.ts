import { expect, test } from "vitest";
import { parseDockerignore } from "./dockerignore";

const ignored = (rules: string, paths: string[], always: string[] = []): string[] => paths.filter((path) => parseDockerignore(rules, always).ignores(path));

test.each<[string, string, string[], string[]]>([
  ["a name at the top only", "node_modules", ["node_modules", "node_modules/a/b", "x/node_modules"], ["node_modules", "node_modules/a/b"]],
  ["a leading slash says the same", "/dist", ["dist", "a/dist"], ["dist"]],
  ["* stays within a folder", "*.log", ["a.log", "b/a.log", ".log"], ["a.log", ".log"]],
  ["**/ reaches every depth, the top included", "**/*.log", ["a.log", "b/c/a.log", "a.txt"], ["a.log", "b/c/a.log"]],
  ["/** is all inside, not the folder", "a/**", ["a", "a/b", "a/b/c", "ab"], ["a/b", "a/b/c"]],
  ["? is one character", "a?c", ["abc", "ac", "a/c"], ["abc"]],
  ["classes", "[ab]*.[^c]", ["ax.d", "bx.c", "cx.d"], ["ax.d"]],
  ["escapes", "\\*.x", ["*.x", "a.x"], ["*.x"]],
  ["later rules win", "*.md\n!README.md\nREADME.md", ["a.md", "README.md"], ["a.md", "README.md"]],
  ["exceptions bring back, also from within a folder", "a\n!a/keep", ["a", "a/b", "a/keep", "a/keep/c"], ["a", "a/b"]],
  ["comments, blanks and dots", "# all\n\n  ./a/  \n.", ["a", "# all", "b"], ["a"]],
  ["dots are dots", "a.c", ["abc", "a.c"], ["a.c"]],
])("%s", (_, rules, paths, expected) => {
  expect(ignored(rules, paths)).toEqual(expected);
});

test("the Dockerfile is sent whatever the rules say", () => {
  expect(ignored("*", ["Dockerfile", "a"], ["Dockerfile"])).toEqual(["a"]);
  expect(parseDockerignore("*", ["docker/Dockerfile"]).hasExceptions).toBe(true);
  expect(parseDockerignore("*", ["Dockerfile"]).hasExceptions).toBe(false);
});
