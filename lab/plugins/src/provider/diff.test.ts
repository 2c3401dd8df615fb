import { expect, test } from "vitest";
import { diffProps, missing, propertyOf, type Change } from "./diff";
import type { Fields } from "./schema";
import { UNKNOWN, type Props } from "./values";

const FIELDS: Fields = {
  name: { type: "string", autoname: true, replace: true },
  memory: { type: "int" },
  hostname: { type: "string", computed: true, replace: true },
  user: { type: "string", emptyIsUnset: true, replace: true },
  command: { type: "list", replace: true },
  envs: { type: "set", replace: true },
  hosts: { type: "set", of: { type: "object", fields: { host: { type: "string" }, ip: { type: "string" }, tags: { type: "set" } } } },
  options: { type: "map" },
  build: { type: "object", replace: true, fields: { context: { type: "string" }, tags: { type: "list", replace: false }, args: { type: "map" } } },
  free: { type: "list", of: { type: "any" } },
  on: { type: "bool", unset: false },
  id: { type: "string", output: true },
};
const diff = (olds: Props, news: Props): string[] => diffProps(FIELDS, olds, news).map(({ kind, path, replace }: Change) => `${kind} ${path}${replace ? " !" : ""}`);

test.each<[string, Props, Props, string[]]>([
  ["nothing", {}, {}, []],
  ["null, zero and missing are one", { memory: null, command: [], options: {} }, { memory: 0, command: [] }, []],
  ["what the provider decided", { hostname: "abc", id: "1" }, {}, []],
  ["a decided value that the program now sets", { hostname: "abc" }, { hostname: "def" }, ["update hostname !"]],
  ["an empty text that means the image's", { user: "65532" }, { user: "" }, []],
  ["a value that the daemon set and the program did not ask for", { memory: 128 }, {}, ["delete memory"]],
  ["a new value", { memory: 0 }, { memory: 64 }, ["update memory"]],
  ["an unknown value", { memory: 64 }, { memory: UNKNOWN }, ["update memory"]],
  ["list elements", { command: ["a", "b", "c"] }, { command: ["a", "x"] }, ["update command[1] !", "delete command[2] !"]],
  ["a first value", {}, { memory: 64 }, ["add memory"]],
  ["back to the default", { on: true }, {}, ["update on"]],
  ["a first list", { command: [] }, { command: ["a"] }, ["add command !"]],
  ["an emptied list", { command: ["a"] }, { command: [] }, ["delete command !"]],
  ["another order in a set", { envs: ["a", "b"] }, { envs: ["b", "a"] }, []],
  ["set elements", { envs: ["a", "b"] }, { envs: ["a", "c", "d"] }, ["update envs !"]],
  ["a set with something unknown", { envs: ["a"] }, { envs: [`A=${UNKNOWN}`] }, ["update envs !"]],
  ["set objects by what is in them", { hosts: [{ host: "h", ip: "1", tags: ["x", "y"] }] }, { hosts: [{ __defaults: [], ip: "1", host: "h", tags: ["y", "x"] }] }, []],
  ["map entries", { options: { a: "1", b: "2" } }, { options: { b: "3", "c.d": "4" } }, ["delete options.a", "update options.b", 'add options["c.d"]']],
  ["an object's parts, with their own say on replacement", { build: { context: ".", tags: ["a"], args: { X: "1" } } }, { build: { context: ".", tags: ["b"], args: { X: "2" } } }, ["update build.tags[0]", "update build.args.X !"]],
  ["a value of any kind", { free: [{ a: [1] }] }, { free: [{ a: [2] }] }, ["update free[0]"]],
  ["an equal value of any kind", { free: [{ a: [1], b: 2 }] }, { free: [{ b: 2, a: [1] }] }, []],
])("%s", (_, olds, news, expected) => {
  expect(diff(olds, news)).toEqual(expected);
});

test("a provider may tell false from nothing", () => {
  expect(diffProps(FIELDS, {}, { on: false })).toEqual([]);
  expect(diffProps(FIELDS, {}, { on: false, command: [] }, missing)).toEqual([{ path: "command", kind: "add", replace: true }, { path: "on", kind: "add", replace: false }]);
});

test("a path begins with its property", () => {
  expect(["a", "a.b", "a[0].b", 'a["c.d"]'].map(propertyOf)).toEqual(["a", "a", "a", "a"]);
});
