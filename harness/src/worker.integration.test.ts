import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startProgram, startRedis, until, type RedisServer, type Running } from "@dialout/common/testkit";
import Redis from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Harness, REDHAT, Relay, startModel, WORKER_TOKEN } from "./testkit";

// All four programs as they are shipped; only the machine is one.
let redis: RedisServer;
let db: Redis;
let model: { process: Running; url: string };
let relay: Relay;
let worker: Running;
let harness: Harness;
const dir = mkdtempSync(path.join(tmpdir(), "harness-own-worker-"));

const startHarness = (env: Record<string, string> = {}) => Harness.start({ REDIS_URL: redis.url, ANTHROPIC_BASE_URL: model.url, KUBECTL: "/bin/false", SH_SANDBOX_DISCOVERY: "records", KAGENTI_SANDBOX_CWD: dir, ...relay.env(), ...env });

beforeAll(async () => {
  writeFileSync(path.join(dir, "os-release"), REDHAT);
  redis = await startRedis();
  db = new Redis(redis.url);
  model = await startModel();
  relay = await Relay.start(redis.url);
  worker = startProgram("remote-worker", { RELAY_ADDR: relay.attach, SANDBOX_ID: "own", SANDBOX_TOKEN: WORKER_TOKEN, SANDBOX_CWD: dir, WORKER_STATE_DIR: mkdtempSync(path.join(dir, "state-")) });
  await until("the worker is present", async () => (await db.hexists("sh:sandbox:records", "own")) === 1, 30_000);
  harness = await startHarness();
});
afterAll(async () => {
  await harness.process.stop();
  await worker.stop("SIGTERM");
  await relay.process.stop();
  await model.process.stop();
  db.disconnect();
  await redis.stop();
  rmSync(dir, { recursive: true, force: true });
});

it("a review is decided by the worker's own file", async () => {
  const a = await harness.review("own1", "Red Hat", {}, path.join(dir, "os-release"));
  expect(a.body).toMatchObject({ status: "done", verdict: { verdict: "FLAGGED", reason: expect.stringContaining("Red Hat") as string }, sandbox: { kind: "remote", name: "own" } });
});

it("every command carries the leaf's trace and an exec id that the worker knows too", async () => {
  const a = await harness.prompt("own2", "run `true`");
  const { execId } = a.body.tools[0].execs[0] as { execId: string };
  expect(execId).toMatch(/^[0-9a-f-]{36}$/);
  expect(await worker.line(new RegExp(execId))).toContain(execId);
});

it("a relay that restarts under a running command: one effect, one answer, more than one delivery", async () => {
  const file = path.join(dir, "effects");
  const asked = harness.prompt("own3", `run \`echo x >> ${file}; sleep 3; wc -l < ${file}\``);
  await until("the command runs", () => existsSync(file));
  await relay.process.stop();
  await relay.start();
  const a = await asked;
  expect(a.body).toMatchObject({ status: "responded", text: expect.stringMatching(/^1\s*$/) as string });
  expect(a.body.tools[0].execs[0].deliveries).toBeGreaterThan(1);
  expect(readFileSync(file, "utf8")).toBe("x\n");
});

describe("a harness that is stopped", () => {
  it("takes its command with it, a background child included", async () => {
    const tick = path.join(dir, "tick");
    const second = await startHarness({ HARNESS_DRAIN_MS: "200" });
    const asked = second.prompt("own4", `run \`(setsid bash -c 'while :; do echo t >> ${tick}; sleep 0.1; done' &) ; sleep 60\``);
    asked.catch(() => undefined);
    await until("it ticks", () => existsSync(tick));
    second.process.signal("SIGTERM");
    expect((await asked).body).toMatchObject({ status: "failed", reason: "error", tools: [{ tool: "bash", ok: false, execs: [{ error: "aborted", kill: { verified: true, remaining: 0 } }] }] });
    expect(await second.process.ended()).toEqual({ code: 0, signal: null });
    const size = readFileSync(tick).length;
    const seen = Date.now();
    await until("a second has gone by", () => Date.now() - seen > 1000);
    expect(readFileSync(tick).length).toBe(size);
    expect(await db.keys("*:leases")).toEqual([]);
  });
});
