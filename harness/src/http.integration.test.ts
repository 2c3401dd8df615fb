import { startRedis, until, type RedisServer, type Running } from "@dialout/common/testkit";
import Redis from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FakeCluster, Harness, KEY, OS_RELEASE, SELECTOR, startModel } from "./testkit";

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

describe("callers", () => {
  it("one that hangs up does not end its leaf; the result is stored", async () => {
    const gone = new AbortController();
    const asked = harness.ask("/runs", { sessionId: "hangup", kind: "prompt", prompt: "run `sleep 1; echo finished`" }, { method: "POST", signal: gone.signal });
    await harness.process.line(/"session":"hangup".*leaf started/);
    gone.abort();
    await expect(asked).rejects.toThrow();
    const s = await until("the result is there", async () => {
      const r = await harness.status("hangup");
      return r.body.status === "responded" && r;
    });
    expect(s.body.text).toContain("finished");
  });

  it("two with one session share one run", async () => {
    const stamp = cluster.path("sandbox-0", "runs");
    const ask = () => harness.prompt("twice", `run \`echo x >> ${stamp}; sleep 0.5; wc -l < ${stamp}\``);
    const [a, b] = await Promise.all([ask(), ask()]);
    expect(a!.body.text.trim()).toBe("1");
    expect(b!.body).toEqual(a!.body);
  });

  it("a second process does not run a session that a first one is running", async () => {
    const other = await Harness.start({ REDIS_URL: redis.url, ANTHROPIC_BASE_URL: model.url, KUBECTL: cluster.kubectl, KAGENTI_SANDBOX_POOL_SELECTOR: SELECTOR });
    try {
      const first = harness.prompt("elsewhere", "run `sleep 1; echo one`");
      await harness.process.line(/"session":"elsewhere".*leaf started/);
      const second = await other.prompt("elsewhere", "run `echo two`");
      expect([second.status, second.body.error]).toEqual([409, "session_running"]);
      expect((await other.status("elsewhere")).body).toMatchObject({ status: "queued", known: true, running: true });
      expect((await first).body.text).toContain("one");
    } finally {
      await other.process.stop();
    }
  });

  it("no leaf leaves a connection to Redis behind", async () => {
    const clients = async () => ((await db.client("LIST")) as string).split("\n").filter((l) => l.includes("dialout-harness")).length;
    const before = await clients();
    for (let i = 0; i < 5; i++) await harness.review(`leak-${i}`, "Alpine");
    expect(await clients()).toBe(before);
    expect(await db.keys("*:leases")).toEqual([]);
    expect(await db.keys("leaf:run:*")).toEqual([]);
  });
});

describe("HTTP", () => {
  it.each<[string, unknown, number, unknown]>([
    ["/", undefined, 404, ""],
    ["/nothing", { a: 1 }, 404, ""],
    ["/runs", undefined, 404, ""],
    ["/health", undefined, 200, "ok"],
    ["/runs", "{", 400, { error: "envelope_invalid", problems: ["the body is not JSON"] }],
    ["/runs", {}, 400, { error: "envelope_invalid" }],
    ["/runs", { sessionId: "w", workloadId: "x", item: { item_id: "i", file: "f", pattern: "p" } }, 404, { error: "workload_not_found" }],
    ["/runs", { sessionId: "s", kind: "solve", problemStatement: "x", repoUrl: "https://h/r", ref: "m" }, 200, { status: "failed", reason: "bad_inputs" }],
    ["/runs/status", undefined, 400, { error: "sessionId_required" }],
    ["/workloads", {}, 501, { error: "context_service_not_configured" }],
    ["/workloads/x", undefined, 501, { error: "context_service_not_configured" }],
    ["/turn", "{", 400, { error: "invalid_json" }],
    ["/turn", {}, 400, { error: "prompt_required" }],
    ["/turn", { prompt: "x", sessionId: "never-seen" }, 404, { error: "session_not_found" }],
    ["/runs", `"${"x".repeat(1 << 20)}"`, 413, { error: "body_too_large" }],
  ])("%s %j", async (path, body, status, expected) => {
    const a = await harness.ask(path, body);
    expect(a.status).toBe(status);
    if (typeof expected === "string") expect(a.body).toBe(expected);
    else expect(a.body).toMatchObject(expected as object);
  });

  it("a chat goes on under its session", async () => {
    const first = await harness.ask("/turn", { prompt: "hello" });
    expect(first.body).toMatchObject({ sessionId: expect.any(String) as string, response: expect.stringContaining("a script") as string, stopReason: "stop" });
    const next = await harness.ask("/turn", { prompt: "hello again", sessionId: first.body.sessionId });
    expect(next.body.sessionId).toBe(first.body.sessionId);
    expect(await db.xlen(`session:${first.body.sessionId}`)).toBe(4);
  });

  it("has metrics", async () => {
    const m = (await harness.ask("/metrics")).body as string;
    expect(m).toMatch(/dialout_harness_leaves_total\{status="done",reason=""\} \d+/);
    expect(m).toMatch(/dialout_harness_tool_calls_total\{tool="read",ok="true"\} \d+/);
  });

  it("continues the caller's trace", async () => {
    const id = "0af7651916cd43dd8448eb211c80319c";
    const a = await harness.ask("/runs", { sessionId: "trace", item: { item_id: "i1", file: OS_RELEASE, pattern: "x" } }, { headers: { traceparent: `00-${id}-b7ad6b7169203331-01` } });
    expect(a.body.traceId).toBe(id);
    expect(await harness.process.line(new RegExp(`"trace_id":"${id}".*"exec_id":"`))).toContain('"tool":"read"');
  });
});
