import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { byLoad, capOf, hasLabels, readRecord, relayFor, type Candidate } from "./candidates";

const record = (over: Record<string, unknown> = {}) => ({ sandboxId: "w1", labels: { os: "rhel" }, capabilities: ["bash"], capacityMax: 4, transport: "grpc", lastSeenMs: 1_000_000, ...over });
const read = (over: Record<string, unknown> = {}, field = "w1") => readRecord(field, JSON.stringify(record(over)), 1_030_000, 60_000);
const pod = (name: string): Candidate => ({ kind: "pod", name });
const worker = (name: string, capacityMax = 4): Candidate => ({ kind: "remote", name, record: { sandboxId: name, labels: {}, capacityMax } });

describe("readRecord", () => {
  it("takes a fresh one", () => {
    expect(read()).toEqual({ ok: true, record: { sandboxId: "w1", labels: { os: "rhel" }, capacityMax: 4, relayAddr: undefined } });
  });

  it("takes a base relay's record, which has no time", () => {
    expect(read({ lastSeenMs: undefined }).ok).toBe(true);
  });

  it.each([
    ["stale", { lastSeenMs: 969_999 }, /last seen 60 s ago/],
    ["another transport", { transport: "ssh" }, /transport/],
    ["no capacity", { capacityMax: 0 }, /capacityMax/],
    ["fractional capacity", { capacityMax: 1.5 }, /capacityMax/],
    ["a bad id", { sandboxId: "../x" }, /sandboxId/],
    ["an address with a scheme", { relayAddr: "http://x:1" }, /relayAddr/],
    ["labels that are no strings", { labels: { a: 1 } }, /labels/],
  ])("ignores one with %s", (_, over, problem) => {
    const reading = read(over);
    expect(reading.ok).toBe(false);
    expect(!reading.ok && reading.problem).toMatch(problem);
  });

  it("ignores one under another field than its id", () => {
    expect(read({}, "other").ok).toBe(false);
  });

  it("never throws, whatever is in the field", () => {
    fc.assert(fc.property(fc.string(), fc.oneof(fc.string(), fc.json()), (field, json) => void readRecord(field, json, 0, 1)));
  });
});

describe("byLoad", () => {
  it("prefers the least loaded; among equals pods, in the order given", () => {
    const all = [pod("p0"), pod("p1"), worker("w1"), worker("w2")];
    expect(byLoad(all, [0, 0, 0, 0]).map((c) => c.name)).toEqual(["p0", "p1", "w1", "w2"]);
    expect(byLoad(all, [2, 1, 1, 0]).map((c) => c.name)).toEqual(["w2", "p1", "w1", "p0"]);
  });
});

it("a worker's capacity bounds the cap, a pod has only the cap", () => {
  expect(capOf(worker("w", 4), 20)).toBe(4);
  expect(capOf(worker("w", 64), 20)).toBe(20);
  expect(capOf(pod("p"), 20)).toBe(20);
});

it("labels must all be there", () => {
  const r = { sandboxId: "w", capacityMax: 1, labels: { os: "rhel", gpu: "no" } };
  expect(hasLabels(r, {})).toBe(true);
  expect(hasLabels(r, { os: "rhel", gpu: "no" })).toBe(true);
  expect(hasLabels(r, { os: "debian" })).toBe(false);
  expect(hasLabels(r, { zone: "a" })).toBe(false);
});

describe("relayFor: the exec token goes only where the settings allow", () => {
  const of = (relayAddr: string | undefined, allow: string[] = []) => relayFor({ sandboxId: "w", labels: {}, capacityMax: 1, relayAddr }, "relay:8444", allow);
  it.each([
    [undefined, [], "relay:8444", undefined],
    ["relay:8444", [], "relay:8444", undefined],
    ["10.0.0.9:8444", [], "relay:8444", "10.0.0.9:8444"],
    ["10.0.0.9:8444", ["10.0.0.9:8444"], "10.0.0.9:8444", undefined],
    ["r1.relay.svc:8444", ["*.relay.svc:8444"], "r1.relay.svc:8444", undefined],
    ["evil-relay.svc:8444", ["*.relay.svc:8444"], "relay:8444", "evil-relay.svc:8444"],
    ["r1.relay.svc:9", ["*.relay.svc:8444"], "relay:8444", "r1.relay.svc:9"],
  ])("%s with %j", (own, allow, addr, refused) => {
    expect(of(own, allow)).toEqual(refused === undefined ? { addr } : { addr, refused });
  });
});
