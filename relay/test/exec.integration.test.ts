import { startRedis, until, type RedisServer } from "@dialout/common/testkit";
import { ExecRequest } from "@dialout/proto";
import { credentials, makeGenericClientConstructor, status, type MethodDefinition, type ServiceError } from "@grpc/grpc-js";
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { EXEC_TOKEN, ScriptedCaller, ScriptedWorker, WORKER_TOKEN, bearer, metric, startRelayProcess, type RelayProcess } from "./peers";

let redis: RedisServer;
let relay: RelayProcess;
const open: { close(): void }[] = [];
const keep = <T extends { close(): void }>(peer: T): T => {
  open.push(peer);
  return peer;
};
let next = 0;

/** A worker under an id of its own, attached, and a caller. */
async function pair(fields: Parameters<ScriptedWorker["hello"]>[0] = {}) {
  const id = `sbx-${++next}`;
  const worker = keep(new ScriptedWorker(relay.attach)).hello({ sandboxId: id, ...fields });
  const caller = keep(new ScriptedCaller(relay.exec));
  await until(`${id} is attached`, async () => (await caller.describe(id)).error === null);
  return { id, worker, caller };
}

beforeAll(async () => {
  redis = await startRedis();
  relay = await startRelayProcess(redis.url, { SH_RELAY_EXEC_TOKEN_harness: "harness-secret", SH_RELAY_LEGACY_BUFFER_BYTES: "1048576", SH_RELAY_MAX_EXECS: "8" });
});
afterEach(() => {
  for (const peer of open.splice(0)) peer.close();
});
afterAll(async () => {
  await relay.process.stop();
  await redis.stop();
});

describe("an exec", () => {
  it("reaches the worker, streams both outputs and ends with the exit code and OK", async () => {
    const { id, worker, caller } = await pair();
    worker.onExec = ({ reqId }) => {
      worker.accepted(reqId);
      worker.chunk(reqId, "out");
      worker.chunk(reqId, "err", 0n, 2);
      worker.end(reqId, 7);
    };
    const call = caller.exec({ reqId: 5n, command: "x", stdin: Buffer.from([0, 255, 10]), execId: randomUUID() }, id);
    expect((await call.done()).code).toBe(status.OK);
    expect(call.output(1).toString()).toBe("out");
    expect(call.output(2).toString()).toBe("err");
    expect(call.kinds()).toEqual(["accepted", "chunk", "chunk", "end"]);
    expect(call.events.at(-1)?.value).toMatchObject({ exitCode: 7, reqId: 5n });
    const exec = await worker.got("exec");
    expect(exec.stdin).toEqual(Buffer.from([0, 255, 10]));
    expect(exec.window).toBe(524288n);
  });

  it("carries 12 MiB of stdin to a protocol 1 worker", async () => {
    const { id, worker, caller } = await pair();
    worker.close();
    // A grpc-js client takes 4 MiB unless it is told otherwise, as our worker is.
    const big = keep(new ScriptedWorker(relay.attach, WORKER_TOKEN, { "grpc.max_receive_message_length": 16 * 1024 * 1024 })).hello({ sandboxId: id, instanceId: "big" });
    big.onExec = ({ reqId, stdin }) => big.end(reqId, stdin.length === 12 * 1024 * 1024 ? 0 : 1);
    await big.got("welcome");
    const call = caller.exec({ stdin: Buffer.alloc(12 * 1024 * 1024, 1) }, id);
    expect((await call.done()).code).toBe(status.OK);
    expect(call.events.at(-1)?.value).toMatchObject({ exitCode: 0 });
  });

  it("that the worker leaves ends with the event and OK, behind the output that came before", async () => {
    const { id, worker, caller } = await pair();
    worker.onExec = ({ reqId }) => {
      worker.chunk(reqId, "so far");
      worker.stream.end();
    };
    const call = caller.exec({}, id);
    expect((await call.done()).code).toBe(status.OK);
    expect(call.output().toString()).toBe("so far");
    expect(call.events.at(-1)).toMatchObject({ $case: "error", value: { message: "worker disconnected", code: "disconnected" } });
  });
});

describe("every status of the exec listener arrives as one", () => {
  it.each([
    ["wrong token", "nope", status.UNAUTHENTICATED],
    ["no token", null, status.UNAUTHENTICATED],
    ["the worker's token", WORKER_TOKEN, status.UNAUTHENTICATED],
  ])("%s: Exec, Abort and Describe", async (_, token, code) => {
    const { id } = await pair();
    const stranger = keep(new ScriptedCaller(relay.exec, token as string));
    if (token === null) Object.assign(stranger, { token: undefined });
    expect((await stranger.exec({}, id).done()).code).toBe(code);
    expect((await stranger.abort(1n, id))?.code).toBe(code);
    expect((await stranger.describe(id)).error?.code).toBe(code);
  });

  it("the token comes before anything else: also before a message that cannot be decoded, or is too large", async () => {
    const asIs = (b: Buffer) => b;
    const method: MethodDefinition<Buffer, Buffer> = { path: "/sandbox.v1.SandboxExec/Abort", requestStream: false, responseStream: false, requestSerialize: asIs, requestDeserialize: asIs, responseSerialize: asIs, responseDeserialize: asIs };
    const Raw = makeGenericClientConstructor({ abort: method }, "x");
    const client = keep(new Raw(relay.exec, credentials.createInsecure()));
    const send = (bytes: Buffer, token: string) => new Promise<ServiceError | null>((resolve) => void client.abort?.(bytes, bearer(token), (e: ServiceError | null) => resolve(e)));
    expect((await send(Buffer.from([0xff]), "nope"))?.code).toBe(status.UNAUTHENTICATED);
    expect((await send(Buffer.from([0xff]), EXEC_TOKEN))?.code).toBe(status.INVALID_ARGUMENT);
    expect((await send(Buffer.alloc(17 * 1024 * 1024), EXEC_TOKEN))?.code).toBe(status.RESOURCE_EXHAUSTED);
  });

  it("unattached, invalid, in flight", async () => {
    const { id, caller } = await pair();
    const unattached = await caller.exec({}, "nobody").done();
    expect([unattached.code, unattached.details]).toEqual([status.NOT_FOUND, "no live worker for sandbox 'nobody'"]);
    const missing = await caller.raw(ExecRequest.fromPartial({ sandboxId: id })).done();
    expect([missing.code, missing.details]).toEqual([status.INVALID_ARGUMENT, "ExecRequest missing exec field"]);
    expect((await caller.exec({}, "bad id").done()).code).toBe(status.INVALID_ARGUMENT);
    expect((await caller.exec({ execId: "no-uuid" }, id).done()).code).toBe(status.INVALID_ARGUMENT);
    caller.exec({ reqId: 9n, execId: randomUUID() }, id);
    const twin = await caller.exec({ reqId: 9n, execId: randomUUID() }, id).done();
    expect(twin.code).toBe(status.ALREADY_EXISTS);
    expect(twin.details).toMatch(new RegExp(`^req_id 9 already in flight for sandbox '${id}'`));
    expect(await caller.abort(1n, "nobody")).toBeNull();
    expect((await caller.describe("nobody")).error?.code).toBe(status.NOT_FOUND);
  });

  it("a method on the wrong listener is UNIMPLEMENTED", async () => {
    expect((await keep(new ScriptedCaller(relay.attach)).exec().done()).code).toBe(status.UNIMPLEMENTED);
    expect((await keep(new ScriptedWorker(relay.exec, EXEC_TOKEN)).hello().ended()).code).toBe(status.UNIMPLEMENTED);
  });

  it("more execs than allowed", async () => {
    const { id, caller, worker } = await pair();
    const first = caller.exec({ reqId: 1n }, id);
    for (let i = 2; i <= 8; i++) caller.exec({ reqId: BigInt(i) }, id);
    await worker.got("exec", 8);
    expect((await caller.exec({ reqId: 9n }, id).done()).code).toBe(status.RESOURCE_EXHAUSTED);
    worker.end(1n);
    await first.done();
    worker.onExec = ({ reqId }) => worker.end(reqId);
    expect((await caller.exec({ reqId: 10n }, id).done()).code).toBe(status.OK);
  });
});

it("names the caller in the log and in the metrics, and logs no secret, command or stdin", async () => {
  const { id, worker } = await pair();
  worker.onExec = ({ reqId }) => worker.end(reqId);
  const harness = keep(new ScriptedCaller(relay.exec, "harness-secret"));
  const execId = randomUUID();
  await harness.exec({ reqId: 77n, execId, command: "echo hunter2", stdin: Buffer.from("hunter2") }, id).done();
  const line = JSON.parse(await relay.process.line(new RegExp(`${execId}.*exec finished`))) as object;
  expect(line).toMatchObject({ level: "info", sandbox_id: id, req_id: 77, exec_id: execId, caller: "harness", outcome: "end" });
  expect(await metric(relay, 'relay_execs_total{caller="harness",outcome="end"}')).toBe(1);
  for (const secret of ["hunter2", "harness-secret", WORKER_TOKEN, EXEC_TOKEN]) expect(relay.process.output()).not.toContain(secret);
});

describe("abort and cancel", () => {
  it("Abort is forwarded, and the call ends with the worker's terminal frame", async () => {
    const { id, worker, caller } = await pair();
    const execId = randomUUID();
    const call = caller.exec({ reqId: 3n, execId, graceS: 5 }, id);
    await worker.got("exec");
    expect(await caller.abort(3n, id, execId)).toBeNull();
    expect(await worker.got("abort")).toMatchObject({ reqId: 3n, execId });
    worker.end(3n, -1);
    expect((await call.done()).code).toBe(status.OK);
    expect(call.events.at(-1)?.value).toMatchObject({ exitCode: -1 });
  });

  it("a cancelled call is a Detach with exec_id and grace, an Abort otherwise; nothing stays behind", async () => {
    const { id, worker, caller } = await pair();
    const patient = caller.exec({ reqId: 1n, execId: randomUUID(), graceS: 30 }, id);
    const base = caller.exec({ reqId: 2n }, id);
    await worker.got("exec", 2);
    patient.stream.cancel();
    base.stream.cancel();
    expect((await worker.got("detach")).reqId).toBe(1n);
    expect((await worker.got("abort")).reqId).toBe(2n);
    worker.end(1n);
    worker.end(2n, -1);
    await until("no exec is in flight", async () => (await metric(relay, "relay_execs_in_flight")) === 0);
  });
});

describe("redelivery", () => {
  it("on the same session takes the older stream over; only the new delivery's output reaches it", async () => {
    const { id, worker, caller } = await pair();
    const execId = randomUUID();
    const first = caller.exec({ reqId: 4n, execId, delivery: 1 }, id);
    await worker.got("exec");
    worker.accepted(4n);
    worker.chunk(4n, "0123456789");
    await until("output", () => first.output().length === 10);
    const second = caller.exec({ reqId: 4n, execId, delivery: 2, resumeStdout: 4n }, id);
    expect((await first.done()).code).toBe(status.ABORTED);
    expect((await worker.got("exec", 2)).resumeStdout).toBe(4n);
    worker.chunk(4n, "late output of the first delivery", 10n);
    worker.accepted(4n, "joined");
    worker.chunk(4n, "456789ab", 4n);
    worker.end(4n);
    expect((await second.done()).code).toBe(status.OK);
    expect(second.output().toString()).toBe("456789ab");
  });

  it("on a new session goes to the worker again", async () => {
    const { id, worker, caller } = await pair();
    const execId = randomUUID();
    const first = caller.exec({ reqId: 4n, execId }, id);
    await worker.got("exec");
    worker.close();
    await first.done();
    expect(first.events.at(-1)?.value).toMatchObject({ code: "disconnected" });
    const again = keep(new ScriptedWorker(relay.attach)).hello({ sandboxId: id });
    await again.got("welcome");
    const second = caller.exec({ reqId: 4n, execId, delivery: 2 }, id);
    await again.got("exec");
    again.accepted(4n, "replay");
    again.end(4n, 5);
    await second.done();
    expect(second.events.at(-1)?.value).toMatchObject({ exitCode: 5 });
  });
});

describe("a base (G2) worker", () => {
  it("gets base frames only: no Welcome, Credit, Detach, Heartbeat, nor additional fields", async () => {
    const { id, worker, caller } = await pair({ protocol: 0, instanceId: "", journalId: "" });
    worker.onExec = ({ reqId }) => {
      for (let i = 0; i < 20; i++) worker.chunk(reqId, Buffer.alloc(32_768, i));
      if (reqId === 1n) worker.end(reqId);
    };
    const call = caller.exec({ reqId: 1n, execId: randomUUID(), graceS: 30, journalId: "j", delivery: 1 }, id);
    expect((await call.done()).code).toBe(status.OK);
    expect(call.output().length).toBe(20 * 32_768);
    const second = caller.exec({ reqId: 2n, execId: randomUUID(), graceS: 30 }, id);
    await worker.got("exec", 2);
    second.stream.cancel();
    expect(await worker.got("abort")).toEqual({ reqId: 2n, execId: "" });
    expect(new Set(worker.frames.map((f) => f.msg?.$case))).toEqual(new Set(["exec", "abort"]));
    expect(await worker.got("exec")).toMatchObject({ window: 0n, execId: "", graceS: 0, journalId: "", delivery: 0 });
  });

  it("that outruns a stalled reader costs that exec alone", async () => {
    const { id, worker, caller } = await pair({ protocol: 0 });
    worker.onExec = ({ reqId }) => {
      if (reqId === 1n) for (let i = 0; i < 100; i++) worker.chunk(reqId, Buffer.alloc(32_768));
      else worker.end(reqId);
    };
    const stalled = caller.exec({ reqId: 1n }, id, false);
    stalled.stall();
    expect((await worker.got("abort")).reqId).toBe(1n);
    expect((await caller.exec({ reqId: 2n }, id).done()).code).toBe(status.OK);
    stalled.resume(() => undefined);
    expect((await stalled.done()).code).toBe(status.RESOURCE_EXHAUSTED);
  });

  it("is not sent a frame that would end its session", async () => {
    const { id, worker, caller } = await pair({ protocol: 0 });
    expect((await caller.exec({ stdin: Buffer.alloc(5 * 1024 * 1024) }, id).done()).code).toBe(status.RESOURCE_EXHAUSTED);
    worker.onExec = ({ reqId }) => worker.end(reqId);
    expect((await caller.exec({ stdin: Buffer.alloc(1024 * 1024) }, id).done()).code).toBe(status.OK);
  });

  it("may send chunks that a caller with default limits could not take whole", async () => {
    const { id, worker, caller } = await pair({ protocol: 0 });
    const data = Buffer.alloc(900_000, 7);
    worker.onExec = ({ reqId }) => {
      worker.chunk(reqId, data);
      worker.end(reqId);
    };
    const call = caller.exec({}, id);
    expect((await call.done()).code).toBe(status.OK);
    expect(call.output().equals(data)).toBe(true);
    expect(Math.max(...call.events.map((e) => (e.$case === "chunk" ? e.value.data.length : 0)))).toBe(32_768);
  });
});
