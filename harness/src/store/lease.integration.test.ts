import { createLogger } from "@dialout/common";
import { startRedis, until, type RedisServer } from "@dialout/common/testkit";
import Redis from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Leases } from "./lease";
import { Store } from "./redis";

let redis: RedisServer;
let db: Redis;
let store: Store;
const log = createLogger("test", "silent");
const KEY = "sh:sandbox:a:leases";

beforeAll(async () => {
  redis = await startRedis();
  db = new Redis(redis.url);
  store = new Store(redis.url, 1000, log);
});
afterAll(async () => {
  store.close();
  db.disconnect();
  await redis.stop();
});
beforeEach(() => db.flushall());

const leases = (ttlMs = 60_000, heartbeatMs = 20_000) => new Leases(store, ttlMs, heartbeatMs, log);

describe("a lease", () => {
  it("is the contract's sorted set: member, and expiry in ms as score", async () => {
    const before = Date.now();
    const lease = await leases().acquire(KEY, 2, "leaf-1");
    const score = Number(await db.zscore(KEY, "leaf-1"));
    expect(score).toBeGreaterThanOrEqual(before + 59_000);
    expect(score).toBeLessThanOrEqual(Date.now() + 61_000);
    await lease!.release();
    expect(await db.exists(KEY)).toBe(0);
  });

  it("is refused above the cap, however many ask at once", async () => {
    const l = leases();
    const got = await Promise.all(Array.from({ length: 20 }, (_, i) => l.take(KEY, 3, `leaf-${i}`)));
    expect(got.filter(Boolean)).toHaveLength(3);
    expect(await l.load(KEY)).toBe(3);
  });

  it("taken twice by one holder is one lease", async () => {
    const l = leases();
    expect(await l.take(KEY, 1, "x")).toBe(true);
    expect(await l.take(KEY, 1, "x")).toBe(true);
    expect(await l.load(KEY)).toBe(1);
  });

  it("that a crashed harness left expires for the next one", async () => {
    await db.zadd(KEY, Date.now() - 1, "crashed");
    expect(await leases().load(KEY)).toBe(0);
    expect(await leases().take(KEY, 1, "next")).toBe(true);
  });

  it("is kept alive while held", async () => {
    const lease = await leases(300, 50).acquire(KEY, 1, "busy");
    const first = Number(await db.zscore(KEY, "busy"));
    await until("it was renewed past its first expiry", async () => Number(await db.zscore(KEY, "busy")) > first + 300);
    await lease!.release();
  });

  it("cannot be revived by a renewal after its release", async () => {
    const l = leases();
    await l.take(KEY, 1, "x");
    await l.release(KEY, "x");
    expect(await l.renew(KEY, "x")).toBe(false);
    expect(await db.exists(KEY)).toBe(0);
  });

  it("stays released when heartbeats and release race", async () => {
    const l = leases(2000, 1);
    for (let i = 0; i < 50; i++) {
      const lease = await l.acquire(KEY, 1, `r-${i}`);
      expect(lease).toBeDefined();
      await Promise.all([lease!.release(), lease!.release()]);
      expect(await db.exists(KEY)).toBe(0);
    }
  });

  it("that expired while its holder was away is taken again only if there is room", async () => {
    const lease = await leases(60_000, 30).acquire(KEY, 1, "late");
    await db.zrem(KEY, "late");
    await until("taken again", async () => (await db.zscore(KEY, "late")) !== null);
    await db.multi().zrem(KEY, "late").zadd(KEY, Date.now() + 60_000, "other").exec();
    await until("two more heartbeats", (() => { const t = Date.now(); return () => Date.now() - t > 100; })());
    expect(await db.zrange(KEY, 0, -1)).toEqual(["other"]);
    await lease!.release();
    expect(await db.zrange(KEY, 0, -1)).toEqual(["other"]);
  });
});
