import { freePort, startRedis, until, type RedisServer } from "@dialout/common/testkit";
import { status } from "@grpc/grpc-js";
import { Redis } from "ioredis";
import { afterEach, expect, it } from "vitest";
import { ScriptedCaller, ScriptedWorker, metric, startRelayProcess, type RelayProcess } from "./peers";

const KEY = "sh:sandbox:records";
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function redisServer(port?: number): Promise<{ server: RedisServer; client: Redis; record: (id: string) => Promise<string | undefined> }> {
  const server = await startRedis(port);
  const client = new Redis(server.url, { retryStrategy: () => 100 });
  client.on("error", () => undefined);
  closers.push(() => server.stop(), () => client.disconnect());
  return { server, client, record: async (id) => (await client.hget(KEY, id)) ?? undefined };
}

async function relayProcess(url: string, env: Record<string, string> = {}): Promise<RelayProcess> {
  const relay = await startRelayProcess(url, { SH_RELAY_HEARTBEAT_MS: "1000", SH_RELAY_DEADLINE_MS: "6000", ...env });
  closers.push(() => relay.process.stop());
  return relay;
}

function worker(relay: RelayProcess, id: string): ScriptedWorker {
  const w = new ScriptedWorker(relay.attach).hello({ sandboxId: id, labels: { zone: "lab" } });
  const timer = setInterval(() => w.send({ $case: "heartbeat", value: {} }), 1_000);
  w.onExec = ({ reqId }) => w.end(reqId);
  closers.push(() => {
    clearInterval(timer);
    w.close();
  });
  return w;
}

async function runs(relay: RelayProcess, id: string): Promise<void> {
  const caller = new ScriptedCaller(relay.exec);
  const call = caller.exec({}, id);
  expect((await call.done()).code).toBe(status.OK);
  caller.close();
}

it("the record is the contract's JSON, is refreshed, and goes with the session", async () => {
  const { server, record } = await redisServer();
  const relay = await relayProcess(server.url, { SH_RELAY_ADVERTISE_ADDR: "relay-0.relay:8444" });
  const w = worker(relay, "sbx-1");
  const first = await until("the record", () => record("sbx-1"));
  expect(first).toMatch(/^\{"sandboxId":"sbx-1","labels":\{"zone":"lab"\},"capabilities":\["bash"\],"capacityMax":4,"transport":"grpc","lastSeenMs":\d{13},"relayAddr":"relay-0\.relay:8444"\}$/);
  await until("a refresh", async () => (await record("sbx-1")) !== first);
  w.close();
  await until("the record is gone", async () => (await record("sbx-1")) === undefined);
});

it("a Redis that is away at boot holds up nothing, and gets the records when it comes", async () => {
  const port = await freePort();
  const relay = await relayProcess(`redis://127.0.0.1:${port}`);
  await relay.process.line(/redis is not reachable/);
  await worker(relay, "sbx-1").got("welcome");
  await runs(relay, "sbx-1");
  const ready = await fetch(`http://${relay.health}/readyz`);
  expect([ready.status, await ready.json()]).toEqual([200, { ready: true, redis: "unreachable", attached: 1 }]);
  const { record } = await redisServer(port);
  await until("the record", () => record("sbx-1"), 30_000);
});

it("a Redis that restarts empty gets the records again; workers and execs notice nothing", async () => {
  const { server, record } = await redisServer();
  const relay = await relayProcess(server.url);
  const w = worker(relay, "sbx-1");
  const gone = worker(relay, "sbx-2");
  await until("the records", async () => (await record("sbx-1")) && (await record("sbx-2")));
  await server.stop();
  await until("the relay knows", async () => (await metric(relay, "relay_redis_up")) === 0);
  await runs(relay, "sbx-1");
  gone.close();
  const { record: again } = await redisServer(server.port);
  await until("the record", () => again("sbx-1"), 30_000);
  expect(await again("sbx-2")).toBeUndefined();
  expect(w.status).toBeUndefined();
});

it("a Redis that is frozen holds up nothing, and is left for a new connection (redis/ioredis#1146, redis/ioredis#1791, redis/ioredis#634)", async () => {
  const { server, record } = await redisServer();
  const relay = await relayProcess(server.url);
  worker(relay, "sbx-1");
  await until("the record", () => record("sbx-1"));
  server.process.signal("SIGSTOP");
  await worker(relay, "sbx-2").got("welcome");
  await runs(relay, "sbx-2");
  await until("the relay gives the connection up", async () => (await metric(relay, "relay_redis_up")) === 0, 30_000);
  server.process.signal("SIGCONT");
  await until("the record", () => record("sbx-2"), 30_000);
});

it("kill -9 leaves no ghost behind the next boot, and touches no other relay's record nor a base relay's (NVIDIA/OpenShell#2733, NVIDIA/OpenShell#3546)", async () => {
  const { server, client, record } = await redisServer();
  const relay = await relayProcess(server.url);
  worker(relay, "sbx-ghost");
  worker(relay, "sbx-back");
  await until("the records", async () => (await record("sbx-ghost")) && (await record("sbx-back")));
  await client.hset(KEY, "sbx-theirs", '{"sandboxId":"sbx-theirs","labels":{},"capabilities":[],"capacityMax":1,"transport":"grpc","lastSeenMs":1,"relayAddr":"other:1"}');
  await client.hset(KEY, "sbx-old", '{"sandboxId":"sbx-old","labels":{},"capabilities":[],"capacityMax":1,"transport":"grpc"}');
  await client.hset(KEY, "sbx-junk", "not json");
  await relay.process.stop("SIGKILL");
  expect(await record("sbx-ghost")).toBeDefined();
  const next = await relayProcess(server.url);
  worker(next, "sbx-back");
  await until("the ghost is gone", async () => (await record("sbx-ghost")) === undefined);
  await until("the record", () => record("sbx-back"));
  expect((await client.hkeys(KEY)).sort()).toEqual(["sbx-back", "sbx-junk", "sbx-old", "sbx-theirs"]);
});

it("a worker that moved to another relay keeps the record the other one wrote", async () => {
  const { server, record } = await redisServer();
  const [a, b] = [await relayProcess(server.url, { SH_RELAY_ADVERTISE_ADDR: "a:1" }), await relayProcess(server.url, { SH_RELAY_ADVERTISE_ADDR: "b:1" })];
  const before = worker(a, "sbx-1");
  await until("a's record", async () => (await record("sbx-1"))?.includes('"a:1"'));
  worker(b, "sbx-1");
  await until("b's record", async () => (await record("sbx-1"))?.includes('"b:1"'));
  await a.process.line(/another relay holds the presence record/);
  before.close();
  await a.process.line(/worker detached/);
  const seen = await record("sbx-1");
  await until("b's refresh", async () => (await record("sbx-1")) !== seen);
  expect(await record("sbx-1")).toContain('"b:1"');
});
