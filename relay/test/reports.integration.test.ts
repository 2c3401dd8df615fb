// What others reported of servers of the kind that the relay is; docs/reports.md lists the reports.
import { startRedis, until, type RedisServer } from "@dialout/common/testkit";
import { status } from "@grpc/grpc-js";
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ScriptedCaller, ScriptedWorker, metric, startRelayProcess, type RelayProcess } from "./peers";

let redis: RedisServer;
let relay: RelayProcess;

beforeAll(async () => {
  redis = await startRedis();
  relay = await startRelayProcess(redis.url, { SH_RELAY_MAX_EXECS: "3" });
});
afterAll(async () => {
  await relay.process.stop();
  await redis.stop();
});

describe("grpc/grpc-node#1839: a peer that closes its half right behind its last frame", () => {
  it.each([
    ["after work", async (w: ScriptedWorker, caller: ScriptedCaller, id: string) => {
      w.onExec = ({ reqId }) => {
        for (let i = 0; i < 50; i++) w.chunk(reqId, "x");
        w.end(reqId, 4);
        w.stream.end();
      };
      const call = caller.exec({}, id);
      expect((await call.done()).code).toBe(status.OK);
      expect(call.output().toString()).toBe("x".repeat(50));
      expect(call.events.at(-1)).toMatchObject({ $case: "end", value: { exitCode: 4 } });
    }],
    ["without any", async (w: ScriptedWorker) => {
      w.stream.end();
    }],
  ] as const)("is not left hanging, ten times over, %s", async (how, act) => {
    const caller = new ScriptedCaller(relay.exec);
    for (let i = 0; i < 10; i++) {
      const id = `sbx-${how.slice(0, 5)}-${i}`.replaceAll(" ", "-");
      const w = new ScriptedWorker(relay.attach).hello({ sandboxId: id, protocol: i % 2 });
      await until("it is attached", async () => (await caller.describe(id)).error === null);
      await act(w, caller, id);
      expect((await w.ended()).code).toBe(status.OK);
      w.close();
    }
    caller.close();
    await until("nobody is attached", async () => (await metric(relay, "relay_attached_workers")) === 0);
  });
});

it("kubernetes-sigs/apiserver-network-proxy#855: what callers gave up takes no place from others once the worker has told its end", async () => {
  const id = "sbx-places";
  const w = new ScriptedWorker(relay.attach).hello({ sandboxId: id });
  const caller = new ScriptedCaller(relay.exec);
  await w.got("welcome");
  const full = () => [1n, 2n, 3n].map((n) => caller.exec({ reqId: n, execId: randomUUID(), graceS: 600 }, id));
  for (let round = 1; round <= 3; round++) {
    const calls = full();
    await w.got("exec", 3 * round);
    expect((await caller.exec({ reqId: 9n }, id).done()).code).toBe(status.RESOURCE_EXHAUSTED);
    for (const call of calls) call.stream.cancel();
    await w.got("detach", 3 * round);
    expect(await metric(relay, "relay_execs_in_flight")).toBe(3);
    for (const n of [1n, 2n, 3n]) w.end(n, -1);
    await until("the places are free", async () => (await metric(relay, "relay_execs_in_flight")) === 0);
  }
  w.close();
  caller.close();
});
