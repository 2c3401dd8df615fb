import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { envelopeSchema, problemsOf, turnLimit } from "./envelope";

const item = { item_id: "i1", file: "/etc/os-release", pattern: "Alpine" };
const parse = (v: unknown) => envelopeSchema.safeParse(v);
const problems = (v: unknown) => {
  const r = parse(v);
  return r.success ? [] : problemsOf(r.error);
};

describe("envelope", () => {
  it("defaults to converge and drops what it does not know, the pool selector above all", () => {
    const r = parse({ sessionId: "s", item, sandboxPoolSelector: "a=b", other: 1 });
    expect(r.data).toEqual({ kind: "converge", sessionId: "s", item });
  });

  it.each([
    [undefined, /^body: /],
    [[], /^body: /],
    ["x", /^body: /],
    [{ item }, /^sessionId: /],
    [{ sessionId: "", item }, /^sessionId: /],
    [{ sessionId: 7, item }, /^sessionId: /],
    [{ sessionId: "s" }, /^item: /],
    [{ sessionId: "s", item: { ...item, file: "" } }, /^item.file: /],
    [{ sessionId: "s", item: { ...item, file: "/a\nb" } }, /^item.file: must not hold/],
    [{ sessionId: "s", item: { ...item, pattern: 1 } }, /^item.pattern: /],
    [{ sessionId: "s", kind: "dance" }, /^kind: /],
    [{ sessionId: "s", kind: "prompt" }, /^prompt: /],
    [{ sessionId: "s", kind: "solve", problemStatement: "x" }, /^repoUrl: /],
    [{ sessionId: "s", item, repoUrl: "https://h/r" }, /^ref: repoUrl and ref go together/],
    [{ sessionId: "s", item, repoUrl: "ext::sh -c id", ref: "main" }, /^repoUrl: /],
    [{ sessionId: "s", item, repoUrl: "https://h/r", ref: "--upload-pack=id" }, /^ref: /],
    [{ sessionId: "s", item, provider: "gpt" }, /^provider: /],
    [{ sessionId: "s", item, decision: { gateId: "g", action: "maybe" } }, /^decision.action: /],
    [{ sessionId: "s", item, maxTurns: 1.5 }, /^maxTurns: /],
  ])("refuses %j", (body, problem) => {
    expect(problems(body).join("\n")).toMatch(problem);
  });

  it("never throws and never repeats a value", () => {
    fc.assert(fc.property(fc.jsonValue(), (v) => void problems(v)));
    expect(problems({ sessionId: "s", item: { ...item, file: "secret\n" } }).join()).not.toMatch(/secret/);
  });
});

it.each([[undefined, 40], [0, 40], [-3, 40], [7, 7]])("maxTurns %s means %s", (asked, limit) => {
  expect(turnLimit(asked, 40)).toBe(limit);
});
