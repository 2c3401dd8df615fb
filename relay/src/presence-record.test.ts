import { expect, it } from "vitest";
import { isOwnGhost, presenceJson } from "./presence-record";

const hello = { sandboxId: "sbx-laptop-demo", labels: { b: "2", a: "1" }, capabilities: ["bash", "base64", "file"], capacityMax: 4 };

it("writes compact JSON with the contract's keys in the contract's order", () => {
  expect(presenceJson(hello, 17, undefined)).toBe('{"sandboxId":"sbx-laptop-demo","labels":{"b":"2","a":"1"},"capabilities":["bash","base64","file"],"capacityMax":4,"transport":"grpc","lastSeenMs":17}');
  expect(presenceJson(hello, 17, "relay-0:8444")).toMatch(/"transport":"grpc","lastSeenMs":17,"relayAddr":"relay-0:8444"\}$/);
});

it.each([
  ["its own", presenceJson(hello, 1, "a:1"), "a:1", true],
  ["another relay's", presenceJson(hello, 1, "b:1"), "a:1", false],
  ["an unnamed one's, by an unnamed relay", presenceJson(hello, 1, undefined), undefined, true],
  ["an unnamed one's, by a named relay", presenceJson(hello, 1, undefined), "a:1", false],
  ["a base relay's", '{"sandboxId":"x","labels":{},"capabilities":[],"capacityMax":1,"transport":"grpc"}', undefined, false],
  ["a pod's", '{"sandboxId":"x","transport":"kubectl","lastSeenMs":1}', undefined, false],
  ["not JSON", "{", undefined, false],
  ["null", "null", undefined, false],
])("reaps %s record: %#", (_, json, addr, expected) => {
  expect(isOwnGhost(json as string, addr as string | undefined)).toBe(expected);
});
