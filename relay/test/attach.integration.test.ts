import { run, startRedis, until, type RedisServer } from "@dialout/common/testkit";
import { WorkerFrame } from "@dialout/proto";
import { credentials, makeGenericClientConstructor, status, type ClientDuplexStream, type MethodDefinition, type StatusObject } from "@grpc/grpc-js";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { EXEC_TOKEN, ScriptedCaller, ScriptedWorker, WORKER_TOKEN, bearer, hello, metric, startRelayProcess, type RelayProcess } from "./peers";

const HEARTBEAT_MS = 500;
const DEADLINE_MS = 2_500;
let redis: RedisServer;
let relay: RelayProcess;
const dir = mkdtempSync(path.join(tmpdir(), "relay-attach-"));
const open: { close(): void }[] = [];
const keep = <T extends { close(): void }>(peer: T): T => {
  open.push(peer);
  return peer;
};
const worker = (token?: string) => keep(new ScriptedWorker(relay.attach, token));
const attached = (id: string) => until(`${id} is attached`, async () => (await keep(new ScriptedCaller(relay.exec)).describe(id)).error === null);
const detached = (id: string, ms?: number) => until(`${id} is detached`, async () => (await keep(new ScriptedCaller(relay.exec)).describe(id)).error?.code === status.NOT_FOUND, ms);
const heart = (w: ScriptedWorker) => {
  const timer = setInterval(() => w.send({ $case: "heartbeat", value: {} }), HEARTBEAT_MS);
  keep({ close: () => clearInterval(timer) });
};

/** The Attach method with frames as bytes, to send what no generated code would. */
function rawAttach(token = WORKER_TOKEN, options = {}) {
  const asIs = (b: Buffer) => b;
  const method: MethodDefinition<Buffer, Buffer> = { path: "/sandbox.v1.SandboxWorker/Attach", requestStream: true, responseStream: true, requestSerialize: asIs, requestDeserialize: asIs, responseSerialize: asIs, responseDeserialize: asIs };
  const Client = makeGenericClientConstructor({ attach: method }, "x");
  const client = keep(new Client(relay.attach, credentials.createInsecure(), options));
  const stream = client.attach?.(bearer(token)) as ClientDuplexStream<Buffer, Buffer>;
  let ended: StatusObject | undefined;
  stream.on("status", (s: StatusObject) => (ended = s)).on("error", () => undefined).on("data", () => undefined);
  return { stream, ended: () => until("the stream ends", () => ended) };
}
const frame = (msg: WorkerFrame["msg"]) => Buffer.from(WorkerFrame.encode({ msg }).finish());

beforeAll(async () => {
  redis = await startRedis();
  relay = await startRelayProcess(redis.url, {
    SH_RELAY_HEARTBEAT_MS: String(HEARTBEAT_MS),
    SH_RELAY_DEADLINE_MS: String(DEADLINE_MS),
    SH_RELAY_HELLO_DEADLINE_MS: "700",
    SH_RELAY_MAX_WORKERS: "20",
    SH_RELAY_TOKEN_PREVIOUS: "worker-previous",
    "SH_RELAY_TOKEN_sbx-own": "own-token",
    "SH_RELAY_TOKEN_sbx-shut": "",
    SH_RELAY_TOKEN_DIR: dir,
  });
});
afterEach(() => {
  for (const peer of open.splice(0)) peer.close();
});
afterAll(async () => {
  await relay.process.stop();
  await redis.stop();
  rmSync(dir, { recursive: true, force: true });
});

describe("who may attach", () => {
  it.each([
    ["the token", "sbx-1", WORKER_TOKEN, true],
    ["the previous token", "sbx-1", "worker-previous", true],
    ["a wrong token", "sbx-1", "nope", false],
    ["the exec token", "sbx-1", EXEC_TOKEN, false],
    ["another id's token", "sbx-1", "own-token", false],
    ["its own token", "sbx-own", "own-token", true],
    ["the global token where an own one is set", "sbx-own", WORKER_TOKEN, false],
    ["any token where an empty one is set", "sbx-shut", WORKER_TOKEN, false],
  ])("%s", async (_, id, token, ok) => {
    const w = worker(token).hello({ sandboxId: id });
    if (ok) expect(await w.got("welcome")).toEqual({ protocol: 1, heartbeatMs: HEARTBEAT_MS, deadlineMs: DEADLINE_MS });
    else {
      expect((await w.ended()).code).toBe(status.UNAUTHENTICATED);
      expect(w.frames).toEqual([]);
      expect(await redis_has(id)).toBe(false);
    }
  });

  it("no token at all", async () => {
    const w = worker();
    const bare = keep(new ScriptedWorker(relay.attach, ""));
    bare.hello({ sandboxId: "sbx-bare" });
    expect((await bare.ended()).code).toBe(status.UNAUTHENTICATED);
    w.close();
  });

  it("a token file is read anew for every attach", async () => {
    const file = path.join(dir, "sbx-file");
    writeFileSync(file, "first\n");
    await worker("first").hello({ sandboxId: "sbx-file" }).got("welcome");
    writeFileSync(file, "second\nfirst\n");
    await worker("second").hello({ sandboxId: "sbx-file" }).got("welcome");
    writeFileSync(file, "");
    expect((await worker("second").hello({ sandboxId: "sbx-file" }).ended()).code).toBe(status.UNAUTHENTICATED);
  });
});

async function redis_has(id: string): Promise<boolean> {
  const { Redis } = await import("ioredis");
  const client = new Redis(redis.url);
  try {
    return (await client.hexists("sh:sandbox:records", id)) === 1;
  } finally {
    client.disconnect();
  }
}

describe("Hello", () => {
  it("late: DEADLINE_EXCEEDED", async () => {
    expect(await worker().ended()).toMatchObject({ code: status.DEADLINE_EXCEEDED, details: "no Hello within 700 ms" });
  });

  it("only after other frames: those are dropped", async () => {
    const w = worker();
    w.send({ $case: "heartbeat", value: {} });
    w.chunk(1n, "early");
    w.hello({ sandboxId: "sbx-early" });
    await w.got("welcome");
  });

  it.each([["a b"], [""], ["-x"], ["x".repeat(64)], ["../../etc/passwd"], ["a\nb"]])("with id %j: INVALID_ARGUMENT naming value and rule", async (sandboxId) => {
    const ended = await worker().hello({ sandboxId }).ended();
    expect(ended.code).toBe(status.INVALID_ARGUMENT);
    expect(ended.details).toContain(`sandbox_id ${JSON.stringify(sandboxId).slice(0, 20)}`.slice(0, 30).replace(/"$/, ""));
    expect(ended.details).toContain("must be 1 to 63 characters");
  });

  it("with capacity 0 or too much: INVALID_ARGUMENT", async () => {
    expect((await worker().hello({ capacityMax: 0 }).ended()).details).toMatch(/capacity_max 0 must be from 1/);
    expect((await worker().hello({ capacityMax: 1_000_000 }).ended()).code).toBe(status.INVALID_ARGUMENT);
  });

  it("a second time: ignored", async () => {
    const w = worker().hello({ sandboxId: "sbx-2nd" });
    await w.got("welcome");
    w.hello({ sandboxId: "sbx-other" });
    w.onExec = ({ reqId }) => w.end(reqId);
    const caller = keep(new ScriptedCaller(relay.exec));
    expect((await caller.exec({}, "sbx-2nd").done()).code).toBe(status.OK);
    expect((await caller.describe("sbx-other")).error?.code).toBe(status.NOT_FOUND);
    expect(w.frames.filter((f) => f.msg?.$case === "welcome")).toHaveLength(1);
  });
});

it("the newest session wins, the older is told why, and its execs end with an event", async () => {
  const older = worker().hello({ sandboxId: "sbx-t", instanceId: "a" });
  await older.got("welcome");
  const caller = keep(new ScriptedCaller(relay.exec));
  const call = caller.exec({}, "sbx-t");
  await older.got("exec");
  // Who has no token takes nobody over.
  await worker("nope").hello({ sandboxId: "sbx-t" }).ended();
  expect(older.status).toBeUndefined();
  const newer = worker().hello({ sandboxId: "sbx-t", instanceId: "b" });
  await newer.got("welcome");
  const ended = await older.ended();
  expect(ended.code).toBe(status.ABORTED);
  expect(ended.details).toMatch(/^superseded/);
  expect((await call.done()).code).toBe(status.OK);
  expect(call.events.at(-1)?.value).toMatchObject({ message: "worker disconnected" });
  expect((await caller.describe("sbx-t")).response).toMatchObject({ instanceId: "b" });
  expect(await redis_has("sbx-t")).toBe(true);
});

describe("bad frames end the session and leave no ghost", () => {
  it.each([
    ["above the size limit", Buffer.alloc(17 * 1024 * 1024), status.RESOURCE_EXHAUSTED],
    ["that cannot be decoded", Buffer.from([0x1a, 0x05, 0x08]), status.INVALID_ARGUMENT],
  ])("one %s", async (_, bytes, code) => {
    for (const protocol of [0, 1]) {
      const w = rawAttach();
      w.stream.write(frame({ $case: "hello", value: hello({ sandboxId: "sbx-bad", protocol }) }));
      await attached("sbx-bad");
      const call = keep(new ScriptedCaller(relay.exec)).exec({}, "sbx-bad");
      await until("the exec is in flight", async () => (await metric(relay, "relay_execs_in_flight")) === 1);
      w.stream.write(bytes);
      expect((await w.ended()).code).toBe(code);
      await call.done();
      expect(call.events.at(-1)?.value).toMatchObject({ message: "worker disconnected" });
      await detached("sbx-bad");
      await until("presence is gone", async () => !(await redis_has("sbx-bad")));
    }
  });

  it("an id above 2^53-1 is nobody's, and costs nobody anything", async () => {
    const w = worker().hello({ sandboxId: "sbx-big" });
    await w.got("welcome");
    w.chunk(2n ** 60n, "x");
    w.end(2n ** 60n);
    w.onExec = ({ reqId }) => w.end(reqId);
    expect((await keep(new ScriptedCaller(relay.exec)).exec({}, "sbx-big").done()).code).toBe(status.OK);
  });
});

describe("liveness", () => {
  it("a worker that only listens is ended by the deadline, one that sends heartbeats is not", async () => {
    const live = worker().hello({ sandboxId: "sbx-live" });
    heart(live);
    const mute = worker().hello({ sandboxId: "sbx-mute" });
    const ended = await mute.ended();
    expect([ended.code, ended.details.slice(0, 8)]).toEqual([status.DEADLINE_EXCEEDED, "liveness"]);
    await mute.got("heartbeat");
    expect(live.status).toBeUndefined();
    await until("presence is gone", async () => !(await redis_has("sbx-mute")));
  });

  it("a base worker needs no heartbeat", async () => {
    const base = worker().hello({ sandboxId: "sbx-base", protocol: 0 });
    const mute = worker().hello({ sandboxId: "sbx-mute" });
    await mute.ended();
    base.onExec = ({ reqId }) => base.end(reqId);
    expect((await keep(new ScriptedCaller(relay.exec)).exec({}, "sbx-base").done()).code).toBe(status.OK);
  });

  it.each([
    ["protocol 1, by silence (grpc/grpc-node#2953)", 1, String(HEARTBEAT_MS)],
    ["base, by the relay's own pings on its long-lived stream (grpc/grpc-node#2734)", 0, ""],
  ])("a stopped process is noticed, and may come back: %s", async (_, protocol, heartbeat) => {
    const id = `sbx-frozen-${protocol}`;
    const bytes = frame({ $case: "hello", value: hello({ sandboxId: id, protocol }) }).toString("hex");
    const child = run(process.execPath, [path.join(__dirname, "frozen-worker.mjs"), relay.attach, WORKER_TOKEN, bytes], { env: { HEARTBEAT: heartbeat } });
    keep({ close: () => void child.stop() });
    await attached(id);
    child.signal("SIGSTOP");
    const call = keep(new ScriptedCaller(relay.exec)).exec({}, id);
    await detached(id, 4 * DEADLINE_MS);
    await call.done();
    expect(call.events.at(-1)?.value).toMatchObject({ message: "worker disconnected" });
    await until("presence is gone", async () => !(await redis_has(id)));
    await worker().hello({ sandboxId: id }).got("welcome");
  });

  it("a stopped relay does not take its workers for silent when it goes on", async () => {
    const w = worker().hello({ sandboxId: "sbx-patient" });
    heart(w);
    await w.got("welcome");
    relay.process.signal("SIGSTOP");
    await new Promise((r) => setTimeout(r, DEADLINE_MS + 1_000)); // the stop is the fault itself
    relay.process.signal("SIGCONT");
    const seen = w.frames.length;
    await until("heartbeats go on", () => w.frames.length > seen + 2);
    expect(w.status).toBeUndefined();
  });
});

it("takes many pings without complaint, as grpc-go clients send them", async () => {
  const session = connect(`http://${relay.attach}`);
  const gone: unknown[] = [];
  session.on("goaway", (code) => gone.push(code)).on("error", (e) => gone.push(e));
  await new Promise<void>((resolve) => session.once("connect", () => resolve()));
  for (let i = 0; i < 200; i++) await new Promise<void>((resolve, reject) => session.ping((e) => (e ? reject(e) : resolve())));
  expect(gone).toEqual([]);
  session.destroy();
});

it("survives workers that vanish while frames are on their way to them (grpc/grpc-node#984)", async () => {
  const caller = keep(new ScriptedCaller(relay.exec));
  for (let i = 0; i < 20; i++) {
    const w = worker().hello({ sandboxId: "sbx-vanish", protocol: i % 2 });
    await attached("sbx-vanish");
    const calls = [1n, 2n, 3n].map((reqId) => caller.exec({ reqId, stdin: Buffer.alloc(200_000) }, "sbx-vanish"));
    w.onExec = ({ reqId }) => {
      w.chunk(reqId, "x");
      w.close();
    };
    for (const call of calls) await call.done();
  }
  await detached("sbx-vanish");
  expect(relay.process.exit).toBeUndefined();
  expect(await metric(relay, "relay_execs_in_flight")).toBe(0);
});

it("refuses more workers than allowed, but not a takeover", async () => {
  const small = await startRelayProcess(redis.url, { SH_RELAY_MAX_WORKERS: "1" });
  try {
    const first = keep(new ScriptedWorker(small.attach)).hello({ sandboxId: "sbx-a" });
    await first.got("welcome");
    expect((await keep(new ScriptedWorker(small.attach)).hello({ sandboxId: "sbx-b" }).ended()).code).toBe(status.RESOURCE_EXHAUSTED);
    await keep(new ScriptedWorker(small.attach)).hello({ sandboxId: "sbx-a" }).got("welcome");
  } finally {
    await small.process.stop();
  }
});
