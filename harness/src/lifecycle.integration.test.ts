import { execFileSync } from "node:child_process";
import { startProgram, startRedis, until, type RedisServer, type Running } from "@dialout/common/testkit";
import Redis from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { FakeCluster, Harness, SELECTOR, startModel } from "./testkit";

let redis: RedisServer;
let model: { process: Running; url: string };
let cluster: FakeCluster;
const started: Harness[] = [];

beforeAll(async () => {
  redis = await startRedis();
  model = await startModel();
  cluster = new FakeCluster();
});
afterEach(async () => {
  for (const h of started.splice(0)) await h.process.stop();
});
afterAll(async () => {
  await model.process.stop();
  await redis.stop();
  cluster.remove();
});

async function start(env: Record<string, string> = {}): Promise<Harness> {
  const h = await Harness.start({ REDIS_URL: redis.url, ANTHROPIC_BASE_URL: model.url, KUBECTL: cluster.kubectl, KAGENTI_SANDBOX_POOL_SELECTOR: SELECTOR, SH_REDIS_TIMEOUT_MS: "800", ...env });
  started.push(h);
  return h;
}

describe("settings", () => {
  it.each([
    [{ REDIS_URL: "http://x" }, /^error: REDIS_URL must be redis:/],
    [{ SH_REMOTE_SANDBOX: "1" }, /^error: SH_RELAY_EXEC_TOKEN is not set: .*Set it, for example/],
    [{ PORT: "70000" }, /^error: PORT="70000" must be a whole number/],
  ])("%j ends with code 3 and one line", async (env, message) => {
    const p = startProgram("harness", env as Record<string, string>);
    expect(await p.ended()).toEqual({ code: 3, signal: null });
    expect(p.output()).toMatch(message);
    expect(p.lines).toHaveLength(1);
  });

  it("a port in use is said in one sentence", async () => {
    const first = await start();
    const p = startProgram("harness", { HOST: "127.0.0.1", PORT: new URL(first.url).port });
    expect(await p.ended()).toMatchObject({ code: 1 });
    expect(p.output()).toMatch(/cannot listen on 127\.0\.0\.1:\d+ \(EADDRINUSE\)\. Choose a free port with PORT/);
  });
});

describe("Redis", () => {
  const quick = async (h: Harness) => {
    const begun = Date.now();
    const a = await h.review(`r-${crypto.randomUUID()}`, "Alpine");
    return { ...a, ms: Date.now() - begun };
  };

  it("that is not there at start: alive, and 503 with the reason until it is", async () => {
    const late = await startRedis();
    await late.stop();
    const h = await start({ REDIS_URL: late.url });
    expect((await h.ask("/health")).status).toBe(200);
    const a = await quick(h);
    expect([a.status, a.body.error]).toEqual([503, "store_unavailable"]);
    expect(a.body.message).toMatch(new RegExp(`^Redis at 127\\.0\\.0\\.1:${late.port} .*Check REDIS_URL$`));
    expect(a.headers.get("retry-after")).toBe("5");
    expect(a.ms).toBeLessThan(3000);
    expect((await h.status("x")).status).toBe(503);
    const again = await startRedis(late.port);
    try {
      await until("a leaf runs", async () => (await quick(h)).status === 200);
    } finally {
      await again.stop();
    }
  });

  it("that freezes: 503 in bounded time, and well again after it thaws", async () => {
    const own = await startRedis();
    const h = await start({ REDIS_URL: own.url });
    expect((await quick(h)).status).toBe(200);
    own.process.signal("SIGSTOP");
    for (let i = 0; i < 2; i++) {
      const a = await quick(h);
      expect(a.status).toBe(503);
      expect(a.ms).toBeLessThan(3000);
    }
    expect((await h.ask("/health")).status).toBe(200);
    own.process.signal("SIGCONT");
    await until("a leaf runs", async () => (await quick(h)).status === 200);
    await own.stop();
  });

  it("that goes away while a leaf runs: the caller still gets the answer", async () => {
    const own = await startRedis();
    const h = await start({ REDIS_URL: own.url });
    const asked = h.prompt("mid", "run `sleep 1; echo survived`");
    await h.process.line(/"session":"mid".*leaf started/);
    await own.stop();
    expect((await asked).body).toMatchObject({ status: "responded", text: expect.stringContaining("survived") as string });
    expect(h.process.output()).toMatch(/result not stored/);
  });
});

describe("SIGTERM", () => {
  it("lets a running leaf end and answers its caller, then leaves", async () => {
    const h = await start();
    const asked = h.prompt("drain", "run `sleep 1; echo finished`");
    await h.process.line(/"session":"drain".*leaf started/);
    h.process.signal("SIGTERM");
    expect((await asked).body).toMatchObject({ status: "responded", text: expect.stringContaining("finished") as string });
    expect(await h.process.ended()).toEqual({ code: 0, signal: null });
  });

  it("stops a leaf that takes longer than the bound: command ended, lease free, caller told", async () => {
    const h = await start({ HARNESS_DRAIN_MS: "500" });
    const mark = `sleep 54${Math.floor(Math.random() * 1e6)}`;
    const asked = h.prompt("cut", `run \`${mark}; echo never\``);
    // Awaited below; a failure before that is reported on its own.
    asked.catch(() => undefined);
    await until("the command runs", () => pids(mark).length > 0);
    const begun = Date.now();
    h.process.signal("SIGTERM");
    expect((await asked).body).toMatchObject({ status: "failed", reason: "error", message: expect.stringContaining("shut down before the leaf ended") as string });
    expect(await h.process.ended()).toEqual({ code: 0, signal: null });
    expect(Date.now() - begun).toBeLessThan(25_000);
    // The pod here is this whole machine: with thousands of processes on it the search may run out of time, and must then say so.
    const left = pids(mark);
    for (const pid of left) process.kill(pid, "SIGKILL");
    expect(left.length === 0 || /nobody could verify that nothing of it is left/.test(h.process.output())).toBe(true);
    const db = new Redis(redis.url);
    expect(await db.keys("*:leases")).toEqual([]);
    expect(await db.keys("leaf:run:*")).toEqual([]);
    expect(await db.get("leaf:result:cut")).toMatch(/"status":"failed"/);
    db.disconnect();
  });

  it("takes no new work meanwhile; a second signal is immediate", async () => {
    const h = await start();
    void h.prompt("stay", "run `sleep 20`").catch(() => undefined);
    await h.process.line(/"session":"stay".*leaf started/);
    h.process.signal("SIGTERM");
    await until("new connections are refused", () => h.ask("/health").then(() => false, () => true));
    const begun = Date.now();
    h.process.signal("SIGTERM");
    expect(await h.process.ended()).toMatchObject({ code: 130 });
    expect(Date.now() - begun).toBeLessThan(2000);
  });
});

/** Processes with a command line that starts like this. */
function pids(text: string): number[] {
  try {
    return execFileSync("pgrep", ["-f", `^${text}`], { encoding: "utf8" }).split("\n").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
