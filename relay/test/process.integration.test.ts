import { freePort, startProgram, startRedis, until, type RedisServer } from "@dialout/common/testkit";
import { status } from "@grpc/grpc-js";
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import net from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { EXEC_TOKEN, ScriptedCaller, ScriptedWorker, WORKER_TOKEN, startRelayProcess, type RelayProcess } from "./peers";

let redis: RedisServer;
const open: { close(): unknown }[] = [];
const keep = <T extends { close(): unknown }>(peer: T): T => {
  open.push(peer);
  return peer;
};
async function relayProcess(env: Record<string, string> = {}): Promise<RelayProcess> {
  const relay = await startRelayProcess(redis.url, env);
  keep({ close: () => relay.process.stop() });
  return relay;
}

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  for (const peer of open.splice(0)) await peer.close();
});
afterAll(() => redis.stop());

describe("refused at start with exit code 3 and one line", () => {
  const env = { SH_RELAY_PORT: "0", SH_RELAY_EXEC_PORT: "0", SH_RELAY_TOKEN: WORKER_TOKEN, SH_RELAY_EXEC_TOKEN: EXEC_TOKEN };
  const refused = async (change: Record<string, string>) => {
    const program = startProgram("relay", { ...env, ...change });
    keep({ close: () => program.stop() });
    expect(await program.ended()).toEqual({ code: 3, signal: null });
    const errors = program.lines.filter((l) => !l.startsWith("{"));
    expect(errors).toHaveLength(1);
    expect(program.output()).not.toMatch(/ at .*\(.*:\d+:\d+\)/);
    for (const secret of [WORKER_TOKEN, EXEC_TOKEN]) expect(program.output()).not.toContain(secret);
    return errors[0] as string;
  };

  it("the exec token missing, or the worker's", async () => {
    expect(await refused({ SH_RELAY_EXEC_TOKEN: "" })).toMatch(/SH_RELAY_EXEC_TOKEN is not set/);
    expect(await refused({ SH_RELAY_EXEC_TOKEN: WORKER_TOKEN })).toMatch(/SH_RELAY_TOKEN equals the exec token/);
  });

  it("a port that is malformed, taken twice, or in use", async () => {
    expect(await refused({ SH_RELAY_PORT: "abc" })).toMatch(/SH_RELAY_PORT="abc" must be a whole number/);
    expect(await refused({ SH_RELAY_PORT: "9443", SH_RELAY_EXEC_PORT: "9443" })).toMatch(/SH_RELAY_EXEC_PORT=9443 is also SH_RELAY_PORT/);
    const port = await freePort();
    const holder = keep(net.createServer());
    await new Promise<void>((resolve) => holder.listen(port, "127.0.0.1", resolve));
    expect(await refused({ SH_RELAY_HOST: "127.0.0.1", SH_RELAY_EXEC_PORT: String(port) })).toMatch(new RegExp(`SH_RELAY_EXEC_PORT=${port} cannot be bound`));
    expect(await refused({ SH_RELAY_HOST: "127.0.0.1", SH_RELAY_HEALTH_PORT: String(port) })).toMatch(new RegExp(`SH_RELAY_HEALTH_PORT=${port} cannot be bound`));
  });
});

it("without any worker token it runs, warns and lets nobody attach", async () => {
  const relay = await relayProcess({ SH_RELAY_TOKEN: "" });
  await relay.process.line(/"warn".*no worker token is configured/);
  for (const token of ["", "x"]) expect((await keep(new ScriptedWorker(relay.attach, token)).hello().ended()).code).toBe(status.UNAUTHENTICATED);
});

it("SH_RELAY_EXEC_AUTH=off serves callers without credentials, and says so", async () => {
  const relay = await relayProcess({ SH_RELAY_EXEC_AUTH: "off", SH_RELAY_EXEC_TOKEN: "" });
  await relay.process.line(/"warn".*SH_RELAY_EXEC_AUTH=off/);
  const worker = keep(new ScriptedWorker(relay.attach)).hello();
  worker.onExec = ({ reqId }) => worker.end(reqId);
  await worker.got("welcome");
  const caller = keep(new ScriptedCaller(relay.exec));
  Object.assign(caller, { token: undefined });
  expect((await caller.exec().done()).code).toBe(status.OK);
  expect(await caller.abort(1n)).toBeNull();
  expect(JSON.parse(await relay.process.line(/exec finished/))).toMatchObject({ caller: "anonymous" });
});

describe("SIGTERM", () => {
  it("takes no new work, lets running execs end, then leaves with 0 and no presence", async () => {
    const relay = await relayProcess({ SH_RELAY_DRAIN_MS: "20000" });
    const worker = keep(new ScriptedWorker(relay.attach)).hello();
    await worker.got("welcome");
    const caller = keep(new ScriptedCaller(relay.exec));
    const call = caller.exec({ reqId: 1n });
    await worker.got("exec");
    relay.process.signal("SIGTERM");
    await until("not ready", async () => (await fetch(`http://${relay.health}/readyz`)).status === 503);
    expect((await fetch(`http://${relay.health}/healthz`)).status).toBe(200);
    expect((await caller.exec({ reqId: 2n }).done()).code).toBe(status.UNAVAILABLE);
    expect((await keep(new ScriptedWorker(relay.attach)).hello({ sandboxId: "sbx-late" }).ended()).code).toBe(status.UNAVAILABLE);
    expect(await caller.abort(1n)).toBeNull();
    await worker.got("abort");
    worker.chunk(1n, "last words");
    worker.end(1n, 4);
    expect((await call.done()).code).toBe(status.OK);
    expect(call.events.at(-1)?.value).toMatchObject({ exitCode: 4 });
    expect(await worker.ended()).toMatchObject({ code: status.UNAVAILABLE, details: "relay is shutting down" });
    expect(await relay.process.ended()).toEqual({ code: 0, signal: null });
    const client = new Redis(redis.url);
    expect(await client.hlen("sh:sandbox:records")).toBe(0);
    client.disconnect();
  });

  it("does not wait longer than the drain time; what still runs gets UNAVAILABLE", async () => {
    const relay = await relayProcess({ SH_RELAY_DRAIN_MS: "300" });
    const worker = keep(new ScriptedWorker(relay.attach)).hello();
    await worker.got("welcome");
    const call = keep(new ScriptedCaller(relay.exec)).exec({ execId: randomUUID(), graceS: 30 });
    await worker.got("exec");
    relay.process.signal("SIGTERM");
    expect((await call.done()).code).toBe(status.UNAVAILABLE);
    expect(await relay.process.ended()).toEqual({ code: 0, signal: null });
    expect(worker.frames.some((f) => f.msg?.$case === "abort")).toBe(false);
  });

  it("twice: leaves at once", async () => {
    const relay = await relayProcess({ SH_RELAY_DRAIN_MS: "60000" });
    const worker = keep(new ScriptedWorker(relay.attach)).hello();
    await worker.got("welcome");
    keep(new ScriptedCaller(relay.exec)).exec();
    await worker.got("exec");
    relay.process.signal("SIGTERM");
    await relay.process.line(/shutting down/);
    relay.process.signal("SIGTERM");
    expect((await relay.process.ended()).code).toBe(130);
  });
});

it("the health listener knows its three paths", async () => {
  const relay = await relayProcess();
  const get = async (path: string) => (await fetch(`http://${relay.health}${path}`)).status;
  await until("redis is seen", async () => ((await (await fetch(`http://${relay.health}/readyz`)).json()) as { redis: string }).redis === "reachable");
  expect([await get("/healthz"), await get("/readyz"), await get("/metrics"), await get("/")]).toEqual([200, 200, 200, 404]);
  expect((await fetch(`http://${relay.health}/healthz`, { method: "POST" })).status).toBe(405);
});
