import { createLogger } from "@dialout/common";
import { startRedis, type RedisServer } from "@dialout/common/testkit";
import Redis from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Leases } from "../store/lease";
import { Store } from "../store/redis";
import { Settings } from "@dialout/common";
import { FakeCluster, SELECTOR } from "../testkit";
import { LocalTransport } from "./local";
import { SandboxPool, type Connector } from "./pool";
import { readSandboxSettings } from "./settings";

let redis: RedisServer;
let db: Redis;
let store: Store;
let cluster: FakeCluster;
const lines: string[] = [];
const log = createLogger("test", "info", { write: (line: string) => void lines.push(line) });
const dialled: string[] = [];
let closed = 0;

/** Notes what was dialled and runs everything here. */
const connect: Connector = {
  pod: (pod) => note(`pod ${pod}`),
  remote: (id, addr) => note(`remote ${id} ${addr}`),
  local: () => note("local"),
};
function note(what: string): LocalTransport {
  dialled.push(what);
  const t = new LocalTransport("/tmp");
  const close = t.close.bind(t);
  t.close = () => ((closed += 1), close());
  return t;
}

beforeAll(async () => {
  redis = await startRedis();
  db = new Redis(redis.url);
  store = new Store(redis.url, 1000, createLogger("test", "silent"));
});
afterAll(async () => {
  store.close();
  db.disconnect();
  await redis.stop();
});
beforeEach(async () => {
  await db.flushall();
  cluster = new FakeCluster({ "sandbox-0": "", "sandbox-1": "" });
  dialled.length = lines.length = closed = 0;
});
afterEach(() => cluster.remove());

function pool(env: Record<string, string> = {}): SandboxPool {
  const s = readSandboxSettings(new Settings({ KUBECTL: cluster.kubectl, KAGENTI_SANDBOX_POOL_SELECTOR: SELECTOR, SH_REMOTE_SANDBOX: "1", SH_RELAY_EXEC_TOKEN: "t", SH_RELAY_ADDR: "relay:8444", ...env }), []);
  return new SandboxPool(s, store, new Leases(store, s.leaseTtlMs, s.heartbeatMs, log), connect, log);
}
const record = (id: string, over: Record<string, unknown> = {}) =>
  db.hset("sh:sandbox:records", id, JSON.stringify({ sandboxId: id, labels: {}, capabilities: [], capacityMax: 4, transport: "grpc", lastSeenMs: Date.now(), ...over }));
const never = new AbortController().signal;
async function names(p: SandboxPool, n: number): Promise<string[]> {
  const got: string[] = [];
  for (let i = 0; i < n; i++) got.push((await p.lease(`leaf-${i}`, never)).name);
  return got;
}

describe("selection", () => {
  it("an idle pod beats an idle worker; load decides after that", async () => {
    await record("w1");
    expect(await names(pool(), 5)).toEqual(["sandbox-0", "sandbox-1", "w1", "sandbox-0", "sandbox-1"]);
  });

  it("a selector that no pod has leaves the workers", async () => {
    await record("w1");
    expect(await names(pool({ KAGENTI_SANDBOX_POOL_SELECTOR: "x=none" }), 1)).toEqual(["w1"]);
    expect(dialled).toEqual(["remote w1 relay:8444"]);
  });

  it("records alone never ask kubectl", async () => {
    await record("w1");
    expect(await names(pool({ SH_SANDBOX_DISCOVERY: "records" }), 1)).toEqual(["w1"]);
    expect(cluster.calls()).toEqual([]);
  });

  it("pods alone never look at records", async () => {
    await record("w1");
    expect(await names(pool({ SH_SANDBOX_DISCOVERY: "pods" }), 3)).toEqual(["sandbox-0", "sandbox-1", "sandbox-0"]);
  });

  it("a worker gets no more leaves than it has room for", async () => {
    await record("w1", { capacityMax: 2 });
    const p = pool({ SH_SANDBOX_DISCOVERY: "records" });
    expect(await names(p, 2)).toEqual(["w1", "w1"]);
    await expect(p.lease("leaf-9", never)).rejects.toMatchObject({ reason: "saturated" });
  });

  it("stale and malformed records are ignored, with a line each", async () => {
    await record("stale", { lastSeenMs: Date.now() - 61_000 });
    await db.hset("sh:sandbox:records", "broken", "{");
    await record("alien", { transport: "carrier-pigeon" });
    await record("w1", { lastSeenMs: undefined });
    expect(await names(pool({ SH_SANDBOX_DISCOVERY: "records" }), 2)).toEqual(["w1", "w1"]);
    for (const id of ["stale", "broken", "alien"]) expect(lines.join("")).toContain(`"sandbox":"${id}"`);
  });

  it("labels narrow the workers", async () => {
    await record("w1", { labels: { os: "debian" } });
    await record("w2", { labels: { os: "rhel", gpu: "1" } });
    expect(await names(pool({ SH_SANDBOX_DISCOVERY: "records", SH_SANDBOX_LABELS: "os=rhel" }), 1)).toEqual(["w2"]);
  });

  it("dials the relay a record names only when that is allowed", async () => {
    await record("w1", { relayAddr: "10.0.0.7:8444" });
    await pool({ SH_SANDBOX_DISCOVERY: "records" }).lease("a", never);
    await pool({ SH_SANDBOX_DISCOVERY: "records", SH_RELAY_ADDR_ALLOW: "10.0.0.7:8444" }).lease("b", never);
    expect(dialled).toEqual(["remote w1 relay:8444", "remote w1 10.0.0.7:8444"]);
    expect(lines.join("")).toMatch(/not in SH_RELAY_ADDR_ALLOW/);
  });
});

describe("when there is nothing", () => {
  it("no pods and no records names both", async () => {
    await expect(pool({ KAGENTI_SANDBOX_POOL_SELECTOR: "x=none" }).lease("a", never)).rejects.toMatchObject({
      reason: "error",
      message: "no Running pods for pool selector 'x=none', and no live remote sandbox in sh:sandbox:records. Is a worker attached?",
    });
  });

  it("a kubectl that is not there is named, even when a worker would be", async () => {
    await record("w1");
    await expect(pool({ KUBECTL: "/no/kubectl" }).lease("a", never)).rejects.toMatchObject({ reason: "error", message: expect.stringMatching(/^\/no\/kubectl get pod .* no such program\. Set KUBECTL/) as string });
  });

  it("no sandbox configured is refused with the ways out", async () => {
    await expect(pool({ KAGENTI_SANDBOX_POOL_SELECTOR: "", SH_REMOTE_SANDBOX: "" }).lease("a", never)).rejects.toMatchObject({ reason: "error", message: expect.stringMatching(/SH_SANDBOX_LOCAL=1/) as string });
  });
});

describe("release", () => {
  it("closes the transport, frees the place, and is idempotent", async () => {
    const p = pool({ KAGENTI_SANDBOX_CAP: "1" });
    const leased = await p.lease("a", never);
    expect(await db.zrange("sh:sandbox:sandbox-0:leases", 0, -1)).toEqual(["a"]);
    await Promise.all([leased.release(), leased.release()]);
    expect(closed).toBe(1);
    expect(await db.exists("sh:sandbox:sandbox-0:leases")).toBe(0);
  });
});

it("a fixed pod is used as it is, without a lease", async () => {
  const leased = await pool({ KAGENTI_SANDBOX_POOL_SELECTOR: "", SH_REMOTE_SANDBOX: "", KAGENTI_SANDBOX_POD: "sandbox-1" }).lease("a", never);
  expect(leased).toMatchObject({ kind: "pod", name: "sandbox-1" });
  expect(cluster.calls()).toEqual([]);
  expect(await db.keys("*")).toEqual([]);
});
