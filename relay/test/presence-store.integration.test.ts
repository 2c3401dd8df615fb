import { createLogger } from "@dialout/common";
import { startRedis, until, type RedisServer } from "@dialout/common/testkit";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RedisPresenceStore } from "../src/presence-store";

let redis: RedisServer;
let store: RedisPresenceStore;
const value = (lastSeenMs: number) => JSON.stringify({ sandboxId: "a", lastSeenMs });
const now = async () => (await store.all()).a;

beforeAll(async () => {
  redis = await startRedis();
  store = new RedisPresenceStore(redis.url, createLogger("t", "silent"));
  await until("redis answers", () => store.up);
});
afterAll(async () => {
  store.close();
  await redis.stop();
});

it("removes a record only when it is one of ours", async () => {
  await store.set("a", value(5));
  await store.remove("a", [value(4), value(6)]);
  expect(await now()).toBe(value(5));
  await store.remove("a", [value(4), value(5)]);
  expect(await now()).toBeUndefined();
});

it.each([
  ["our own", value(5), [value(4), value(5)], true],
  ["none", undefined, [value(5)], true],
  ["somebody's newer one", value(9), [value(5)], false],
  ["somebody's from the same moment", value(6), [value(5)], false],
  ["a leftover from before our last write", value(2), [value(5)], true],
  ["one that is not JSON", "junk", [value(5)], true],
  ["JSON that is no object", "3", [value(5)], true],
  ["a base relay's, which has no time", '{"sandboxId":"a"}', [value(5)], false],
])("refreshes over %s: %#", async (_, present, own, written) => {
  await store.remove("a", [(await now()) ?? ""]);
  if (present !== undefined) await store.set("a", present);
  expect(await store.refresh("a", value(7), 6, own)).toBe(written);
  expect(await now()).toBe(written ? value(7) : present);
});
