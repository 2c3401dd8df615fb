import { startRedis, until, type RedisServer } from "@dialout/common/testkit";
import { status } from "@grpc/grpc-js";
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ScriptedCaller, ScriptedWorker, metric, rss, startRelayProcess, type RelayProcess } from "./peers";

let redis: RedisServer;
let relay: RelayProcess;

beforeAll(async () => {
  redis = await startRedis();
  relay = await startRelayProcess(redis.url);
});
afterAll(async () => {
  await relay.process.stop();
  await redis.stop();
});

it("a flood into a stalled reader stops at the window, leaves other execs their latency, and grows the relay by less than 32 MiB (grpc/grpc-node#1332)", async () => {
  const id = "sbx-1";
  const worker = new ScriptedWorker(relay.attach).hello({ sandboxId: id });
  const caller = new ScriptedCaller(relay.exec);
  await worker.got("welcome");
  let credit = 0;
  let sent = 0;
  const chunk = Buffer.alloc(32_768, 1);
  const total = 64 * 1024 * 1024;
  const pump = () => {
    for (; sent < total && credit >= chunk.length; credit -= chunk.length, sent += chunk.length) worker.chunk(1n, chunk, BigInt(sent));
    if (sent >= total) worker.end(1n);
  };
  worker.stream.on("data", (f: (typeof worker.frames)[number]) => {
    if (f.msg?.$case === "credit") credit += Number(f.msg.value.bytes);
    pump();
  });
  worker.onExec = ({ reqId, window }) => {
    if (reqId === 1n) credit += Number(window);
    else worker.end(reqId);
  };
  const before = await rss(relay.process.pid);
  const stalled = caller.exec({ reqId: 1n, execId: randomUUID() }, id, false);
  stalled.stall();
  await worker.got("exec");
  // Other execs go through while the flood stands still.
  for (let i = 2n; i < 60n; i++) expect((await caller.exec({ reqId: i }, id).done()).code).toBe(status.OK);
  const stopped = sent;
  expect(stopped).toBeLessThan(4 * 1024 * 1024);
  expect(await metric(relay, "relay_queued_bytes")).toBeLessThan(1024 * 1024);
  expect((await rss(relay.process.pid)) - before).toBeLessThan(32 * 1024 * 1024);
  let got = 0;
  stalled.resume((e) => (got += e.$case === "chunk" ? e.value.data.length : 0));
  expect((await stalled.done(60_000)).code).toBe(status.OK);
  expect(got).toBe(total - chunk.length);
  await until("nothing is queued", async () => (await metric(relay, "relay_queued_bytes")) === 0);
  worker.close();
  caller.close();
});
