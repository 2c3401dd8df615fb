import { startRedis, until, type RedisServer } from "@dialout/common/testkit";
import { status } from "@grpc/grpc-js";
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { EXEC_TOKEN, ScriptedCaller, ScriptedWorker, startRelayProcess, type RelayProcess } from "./peers";

let redis: RedisServer;
let relay: RelayProcess;
const open: { close(): void }[] = [];
const keep = <T extends { close(): void }>(peer: T): T => {
  open.push(peer);
  return peer;
};
let next = 0;

/** A worker under an id of its own, attached, and a caller. */
async function pair(fields: Parameters<ScriptedWorker["hello"]>[0] = {}, token?: string) {
  const id = `sbx-${++next}`;
  const worker = keep(new ScriptedWorker(relay.attach)).hello({ sandboxId: id, ...fields });
  const caller = keep(new ScriptedCaller(relay.exec, token ?? EXEC_TOKEN));
  await until(`${id} is attached`, async () => (await caller.describe(id)).error === null);
  return { id, worker, caller };
}

beforeAll(async () => {
  redis = await startRedis();
  relay = await startRelayProcess(redis.url);
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
    expect(exec.window).toBe(262144n);
  });
});
