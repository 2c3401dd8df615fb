import { expect, test } from "vitest";
import { checkInputs, givenOutputs, planOutputs, type Fields } from "./schema";
import { UNKNOWN, type Props } from "./values";

const FIELDS: Fields = {
  name: { type: "string", autoname: true },
  size: { type: "int", required: true },
  mode: { type: "string", default: "soft", pattern: /^(soft|hard)$/ },
  tags: { type: "set", computed: true },
  on: { type: "bool", unset: false },
  labels: { type: "map" },
  rules: { type: "list", of: { type: "object", fields: { port: { type: "int", required: true }, proto: { type: "string", default: "tcp" }, note: { type: "string" } } } },
  address: { type: "string", output: true },
};
const owner = { plugin: "test", type: "a:b:C", name: "mine", seed: Buffer.from("seed") };
const check = (news: Props, olds: Props = {}) => checkInputs(FIELDS, olds, news, owner);

test("defaults are filled in and named, at every level", () => {
  const { inputs, failures } = check({ name: "n", size: 1, rules: [{ port: 80 }] });
  expect(failures).toEqual([]);
  expect(inputs).toEqual({ __defaults: ["mode"], name: "n", size: 1, mode: "soft", rules: [{ __defaults: ["proto"], port: 80, proto: "tcp" }] });
});

test("a name is invented from the seed, and kept from then on", () => {
  const first = check({ size: 1 }).inputs;
  expect(first.name).toMatch(/^mine-[0-9a-f]{7}$/);
  expect(check({ size: 1 }).inputs.name).toBe(first.name);
  expect(checkInputs(FIELDS, first, { size: 2 }, { ...owner, seed: Buffer.from("other") }).inputs.name).toBe(first.name);
  expect(checkInputs(FIELDS, { name: "chosen", __defaults: [] }, { size: 2 }, owner).inputs.name).not.toBe("chosen");
});

test.each<[string, Props, string]>([
  ["an unknown property", { size: 1, colour: "red" }, "test stand-in: property 'colour' of a:b:C is not supported by the lab stand-in; use the genuine plugin"],
  ["an output", { size: 1, address: "x" }, "property 'address' of a:b:C is not supported"],
  ["a nested unknown property", { size: 1, rules: [{ port: 1 }, { port: 2, host: "h" }] }, "property 'rules[1].host' of a:b:C is not supported"],
  ["a missing property", {}, "property 'size' of a:b:C is missing"],
  ["a nested missing property", { size: 1, rules: [{}] }, "property 'rules[0].port' of a:b:C is missing"],
  ["a fraction", { size: 1.5 }, "property 'size' of a:b:C must be a whole number"],
  ["a wrong word", { size: 1, mode: "medium" }, "property 'mode' of a:b:C must be one that matches ^(soft|hard)$"],
  ["a list for a map", { size: 1, labels: ["a"] }, "property 'labels' of a:b:C must be an object of strings, not a list"],
  ["a number in a map", { size: 1, labels: { a: 1 } }, "property 'labels.a' of a:b:C must be a string"],
  ["a text for a flag", { size: 1, on: "yes" }, "property 'on' of a:b:C must be true or false"],
])("%s is refused by name", (_, news, reason) => {
  const { failures } = check({ name: "n", ...news });
  expect(failures).toHaveLength(1);
  expect(failures[0]?.reason).toContain(reason);
});

test("an unknown value passes any rule", () => {
  expect(check({ size: UNKNOWN, mode: UNKNOWN, labels: UNKNOWN, rules: [UNKNOWN] }).failures).toEqual([]);
});

test("a preview knows what the program gave, and what was", () => {
  const { inputs } = check({ name: "n", size: 1, rules: [{ port: 80 }] });
  expect(planOutputs(FIELDS, inputs)).toEqual({ name: "n", size: 1, mode: "soft", tags: UNKNOWN, on: false, labels: null, rules: [{ port: 80, proto: "tcp", note: null }], address: UNKNOWN });
  expect(planOutputs(FIELDS, inputs, { tags: ["a"], address: "here" })).toMatchObject({ tags: ["a"], address: "here" });
});

test("given outputs say nothing of what the provider decides", () => {
  expect(givenOutputs(FIELDS, { size: 1 })).toEqual({ name: null, size: 1, mode: null, on: false, labels: null, rules: [] });
});
