import { existsSync } from "node:fs";
import { startRedis, until, type RedisServer, type Running } from "@dialout/common/testkit";
import Redis from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALPINE, FakeCluster, Harness, KEY, OS_RELEASE, REDHAT, SELECTOR, startModel } from "./testkit";

let redis: RedisServer;
let db: Redis;
let model: { process: Running; url: string };
let cluster: FakeCluster;
let harness: Harness;

beforeAll(async () => {
  redis = await startRedis();
  db = new Redis(redis.url);
  model = await startModel();
  cluster = new FakeCluster();
  harness = await Harness.start({
    REDIS_URL: redis.url,
    ANTHROPIC_BASE_URL: model.url,
    OPENAI_BASE_URL: `${model.url}/v1`,
    OPENAI_API_KEY: KEY,
    OLLAMA_BASE_URL: model.url,
    KUBECTL: cluster.kubectl,
    KAGENTI_SANDBOX_POOL_SELECTOR: SELECTOR,
    KAGENTI_SANDBOX_CAP: "1",
    KAGENTI_SYNC_SATURATION_WAIT_MS: "400",
    KAGENTI_SYNC_SATURATION_BACKOFF_MS: "50",
    SH_MODEL_MAX_RETRIES: "1",
  });
});

afterAll(async () => {
  await harness.process.stop();
  await model.process.stop();
  db.disconnect();
  await redis.stop();
  cluster.remove();
});

const leases = (name = "sandbox-0") => db.zcard(`sh:sandbox:${name}:leases`);

describe("a review", () => {
  it("is decided by the file in the pod, and says where and by whom", async () => {
    const a = await harness.review("a1", "Alpine");
    expect(a.status).toBe(200);
    expect(a.body).toMatchObject({
      status: "done",
      verdict: { item_id: "i1", verdict: "FLAGGED", reason: expect.stringContaining("Alpine Linux") as string },
      sandbox: { kind: "pod", name: "sandbox-0" },
      model: { provider: "anthropic", served: "scripted-1", scripted: true },
      usage: { input: expect.any(Number) as number, output: expect.any(Number) as number },
      turns: 2,
    });
    expect(a.body.tools.map((t: { tool: string }) => t.tool)).toEqual(["read", "submit_verdict"]);
    expect(a.body.tools[0].execs.at(-1)).toMatchObject({ exitCode: 0, stdoutBytes: ALPINE.length, deliveries: 1 });
    expect((await harness.review("a2", "Red Hat")).body.verdict).toMatchObject({ verdict: "CLEAR", reason: expect.stringContaining("Alpine Linux v3.20") as string });
    expect(await leases()).toBe(0);
  });

  it.each(["openai-compatible", "ollama"])("works the same through %s", async (provider) => {
    const a = await harness.review(`p-${provider}`, "Alpine", { provider, model: "some" });
    expect(a.body).toMatchObject({ status: "done", verdict: { verdict: "FLAGGED" }, model: { provider, id: "some", scripted: true } });
  });

  it("of a file that cannot be read gives no verdict, but a reason", async () => {
    const a = await harness.review("nofile", "Alpine", {}, "/no/such/file");
    expect(a.body).toMatchObject({ status: "failed", reason: "no_verdict", message: expect.stringContaining("File not readable in pod: /no/such/file") as string });
    expect((await harness.status("nofile")).body).toMatchObject({ status: "failed", reason: "no_verdict", message: a.body.message, known: true });
  });

  it("reads a long file to its end", async () => {
    cluster.put("sandbox-0", "long", `${"filler\n".repeat(4500)}needle here\n`);
    const a = await harness.review("long", "needle", {}, "/proc/self/cwd/long");
    expect(a.body.verdict).toMatchObject({ verdict: "FLAGGED", reason: expect.stringContaining("needle here") as string });
    expect(a.body.turns).toBe(4);
  });

  it("stops at maxTurns", async () => {
    const a = await harness.review("turns", "needle", { maxTurns: 1 }, "/proc/self/cwd/long");
    expect(a.body).toMatchObject({ status: "failed", reason: "no_verdict", message: expect.stringContaining("the limit of 1 turns") as string });
  });

  it("checks out a repository for the leaf alone", async () => {
    const a = await harness.prompt("repo", "run `true`", { repoUrl: "https://127.0.0.1:1/x.git", ref: "main" });
    expect(a.body).toMatchObject({ status: "failed", reason: "bad_inputs", message: expect.stringContaining("cannot check out \"main\"") as string });
  });
});

describe("a session that has a verdict", () => {
  it("is answered from its log: no lease, no model, no command", async () => {
    await harness.review("old", "Alpine");
    cluster.put("sandbox-0", "os-release", REDHAT);
    const calls = cluster.calls().length;
    const asked = model.process.lines.length;
    const again = await harness.review("old", "Alpine");
    expect(again.body).toMatchObject({ status: "done", replayed: true, verdict: { verdict: "FLAGGED" }, sandbox: { kind: "pod", name: "sandbox-0" } });
    expect(cluster.calls()).toHaveLength(calls);
    expect(model.process.lines).toHaveLength(asked);
    expect((await harness.review("fresh", "Alpine")).body.verdict.verdict).toBe("CLEAR");
    expect((await harness.status("old")).body.tools).toHaveLength(2);
    cluster.put("sandbox-0", "os-release", ALPINE);
  });
});

describe("a prompt leaf", () => {
  it("reads back a marker that only the pod has", async () => {
    const marker = `marker-${crypto.randomUUID()}`;
    cluster.put("sandbox-0", "proof.txt", `${marker}\n`);
    const a = await harness.prompt("m1", "run `cat /proc/self/cwd/proof.txt; pwd` with bash and report");
    expect(a.body).toMatchObject({ status: "responded", sandbox: { kind: "pod", name: "sandbox-0" } });
    // The bash tool changes to the configured folder first, so the pod's own folder has to be reached by read.
    expect(a.body.text).toContain("No such file");
    const b = await harness.prompt("m2", "read /proc/self/cwd/proof.txt and report");
    expect(b.body).toMatchObject({ status: "responded", text: expect.stringContaining(marker) as string });
    expect((await harness.status("m2")).body).toMatchObject({ status: "responded", known: true });
  });

  it("writes, edits and searches through the transport", async () => {
    const at = cluster.path("sandbox-0", "w/x.txt");
    const a = await harness.prompt("w1", `write \`one two\` to ${at} then replace \`two\` with \`2\` in ${at} then grep \`one.2\` in ${at} then list ${cluster.path("sandbox-0", "w")}`);
    expect(a.body.status).toBe("responded");
    expect(a.body.text).toMatch(/:1:one 2\n.*x\.txt$/);
    expect(a.body.tools.every((t: { ok: boolean }) => t.ok)).toBe(true);
  });
});

describe("asynchronously", () => {
  it("is accepted at once and found by status", async () => {
    const a = await harness.review("async1", "Alpine", { async: true, tenant: "team" });
    expect([a.status, a.body]).toEqual([202, { status: "accepted", sessionId: "async1" }]);
    const done = await until("the result is stored", async () => {
      const s = await harness.ask("/run-leaf/status?sessionId=async1&tenant=team");
      return s.body.status === "done" && s;
    });
    expect(done.body).toMatchObject({ known: true, verdict: { verdict: "FLAGGED" } });
    expect((await harness.status("async1")).body).toEqual({ status: "queued", known: false, running: false });
  });
});

describe("saturation", () => {
  it("waits, then answers 503 with Retry-After and stores nothing", async () => {
    await db.zadd("sh:sandbox:sandbox-0:leases", Date.now() + 60_000, "somebody-else");
    const start = Date.now();
    const a = await harness.review("sat1", "Alpine");
    expect(a.status).toBe(503);
    expect(a.headers.get("retry-after")).toBe("5");
    expect(a.body).toMatchObject({ status: "failed", reason: "saturated", message: `sandbox pool '${SELECTOR}' saturated: all pods at capacity` });
    expect(Date.now() - start).toBeGreaterThanOrEqual(400);
    expect(await db.exists("leaf:result:sat1")).toBe(0);
  });

  it("goes on when a place becomes free meanwhile, also by expiry", async () => {
    await db.zadd("sh:sandbox:sandbox-0:leases", Date.now() + 200, "somebody-else");
    expect((await harness.review("sat2", "Alpine")).body).toMatchObject({ status: "done" });
  });
});

describe("approval", () => {
  const item = { item_id: "i1", file: OS_RELEASE, pattern: "Alpine", require_approval: true };
  const post = (sessionId: string, decision?: object) => harness.ask("/runs", { sessionId, item, ...(decision && { decision }) });

  it("parks the leaf, keeps it parked, and reports after the decision", async () => {
    const paused = await post("g1");
    expect(paused.body).toMatchObject({ status: "paused", gate: { summary: expect.stringContaining("Alpine") as string, proposed_action: "Report FLAGGED for i1." } });
    const { gateId } = paused.body as { gateId: string };
    expect((await harness.status("g1")).body).toMatchObject({ status: "paused", gateId });
    expect((await post("g1")).body).toMatchObject({ status: "paused", gateId, replayed: true });
    expect((await post("g1", { gateId: "other", action: "approve" })).body).toMatchObject({ status: "failed", reason: "bad_inputs", message: expect.stringContaining(gateId) as string });
    expect((await harness.status("g1")).body).toMatchObject({ status: "paused", gateId });
    expect((await post("g1", { gateId, action: "approve" })).body).toMatchObject({ status: "done", verdict: { verdict: "FLAGGED" } });
    expect((await post("g1", { gateId, action: "abort" })).body).toMatchObject({ status: "failed", reason: "bad_inputs", message: expect.stringContaining("already decided: approve") as string });
    expect((await harness.status("g1")).body).toMatchObject({ status: "done" });
  });

  it("a rejection with words still ends in a verdict, an abort in none", async () => {
    const g2 = (await post("g2")).body as { gateId: string };
    expect((await post("g2", { gateId: g2.gateId, action: "reject", feedback: "look again" })).body).toMatchObject({ status: "done" });
    const g3 = (await post("g3")).body as { gateId: string };
    expect((await post("g3", { gateId: g3.gateId, action: "abort" })).body.status).toBe("aborted");
    expect((await post("g3")).body).toMatchObject({ status: "aborted", replayed: true });
    expect((await harness.status("g3")).body.status).toBe("aborted");
  });
});

describe("kubectl", () => {
  it("that fails is an error of its own, never an empty pool", async () => {
    cluster.failGets("Unable to connect to the server: dial tcp: connection refused");
    const a = await harness.review("k1", "Alpine");
    cluster.failGets(undefined);
    expect(a.body).toMatchObject({ status: "failed", reason: "error" });
    expect(a.body.message).toMatch(/kubectl get pod -l sh\.kagenti\.io\/sandbox-pool=default .* failed: Unable to connect/);
    expect(a.body.message).not.toMatch(/no Running pods/);
  });

  it("that finds nothing is the contract's error; a pod on its way out is nothing", async () => {
    cluster.list([], [{ metadata: { name: "sandbox-0", deletionTimestamp: "2026-11-29T00:00:00Z" } }]);
    const a = await harness.review("k2", "Alpine");
    expect(a.body).toMatchObject({ status: "failed", reason: "error", message: `no Running pods for pool selector '${SELECTOR}'` });
    cluster.list(["sandbox-0"]);
  });

  it("a pod that is gone fails the leaf with its name, not the model's guess", async () => {
    cluster.list(["sandbox-9"]);
    const a = await harness.review("k3", "Alpine");
    cluster.list(["sandbox-0"]);
    expect(a.body).toMatchObject({ status: "failed", reason: "error", message: expect.stringMatching(/^the sandbox is lost: .*sandbox-9/) as string });
    expect(await leases("sandbox-9")).toBe(0);
  });
});

it("no secret has been logged or answered", () => {
  expect(harness.process.output()).not.toContain(KEY);
  expect(existsSync(cluster.kubectl)).toBe(true);
});
