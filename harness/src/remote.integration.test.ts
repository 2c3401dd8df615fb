import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { End, ExecError, Hello, SandboxWorkerClient, Stream, type ServerFrame, type WorkerFrame } from "@dialout/proto";
import { freePort, startRedis, until, type RedisServer, type Running } from "@dialout/common/testkit";
import { credentials, Metadata, type ClientDuplexStream } from "@grpc/grpc-js";
import Redis from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ALPINE, FakeCluster, Harness, REDHAT, Relay, SELECTOR, startModel, WORKER_TOKEN } from "./testkit";

/** A worker that speaks the base protocol only and runs commands in a folder of its own. */
class BaseWorker {
  readonly dir = mkdtempSync(path.join(tmpdir(), "harness-worker-"));
  private readonly client: SandboxWorkerClient;
  private readonly stream: ClientDuplexStream<WorkerFrame, ServerFrame>;
  private readonly children = new Map<bigint, ChildProcess>();

  constructor(readonly id: string, relay: string, capacity = 4) {
    writeFileSync(path.join(this.dir, "os-release"), REDHAT);
    this.client = new SandboxWorkerClient(relay, credentials.createInsecure());
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${WORKER_TOKEN}`);
    this.stream = this.client.attach(metadata);
    this.stream.on("error", () => undefined);
    this.stream.on("data", (frame: ServerFrame) => {
      const m = frame.msg;
      if (m?.$case === "exec") this.run(m.value.reqId, m.value.command, Buffer.from(m.value.stdin));
      if (m?.$case === "abort") this.children.get(m.value.reqId)?.kill("SIGKILL");
    });
    this.send({ $case: "hello", value: Hello.fromPartial({ sandboxId: id, capabilities: ["bash"], capacityMax: capacity, arch: "amd64", image: "test", trust: "untrusted" }) });
  }

  private send(msg: NonNullable<WorkerFrame["msg"]>): void {
    this.stream.write({ msg });
  }

  private run(reqId: bigint, command: string, stdin: Buffer): void {
    const child = spawn("bash", ["-c", command], { cwd: this.dir, env: { PATH: process.env.PATH, HOME: this.dir, SHLVL: "1" } });
    this.children.set(reqId, child);
    const chunk = (stream: Stream) => (data: Buffer) => this.send({ $case: "chunk", value: { reqId, data, stream, offset: 0n } });
    child.stdout.on("data", chunk(Stream.STREAM_STDOUT));
    child.stderr.on("data", chunk(Stream.STREAM_STDERR));
    child.once("error", (e) => this.send({ $case: "error", value: ExecError.fromPartial({ reqId, message: e.message }) }));
    child.once("close", (code) => this.send({ $case: "end", value: End.fromPartial({ reqId, exitCode: code ?? -1 }) }));
    child.stdin.on("error", () => undefined);
    child.stdin.end(stdin);
  }

  /** As if the machine lost power: no goodbye, and nothing it ran goes on. */
  vanish(): void {
    this.client.close();
    this.stream.cancel();
    for (const c of this.children.values()) c.kill("SIGKILL");
    rmSync(this.dir, { recursive: true, force: true });
  }
}

let redis: RedisServer;
let db: Redis;
let model: { process: Running; url: string };
let cluster: FakeCluster;
let relay: Relay;
let remote: Harness;
let workers: BaseWorker[] = [];

async function attached(id: string, capacity?: number, to = relay): Promise<BaseWorker> {
  const w = new BaseWorker(id, to.attach, capacity);
  workers.push(w);
  await until(`${id} is present`, async () => (await db.hexists("sh:sandbox:records", id)) === 1);
  return w;
}

const start = (env: Record<string, string> = {}) =>
  Harness.start({
    REDIS_URL: redis.url,
    ANTHROPIC_BASE_URL: model.url,
    KUBECTL: cluster.kubectl,
    ...relay.env(),
    SH_RELAY_GRACE_MS: "1500",
    KAGENTI_SYNC_SATURATION_WAIT_MS: "300",
    ...env,
  });

beforeAll(async () => {
  redis = await startRedis();
  db = new Redis(redis.url);
  model = await startModel();
  cluster = new FakeCluster({ "sandbox-0": ALPINE });
  relay = await Relay.start(redis.url);
  remote = await start();
});
afterEach(async () => {
  for (const w of workers) w.vanish();
  workers = [];
  await until("nobody is present", async () => (await db.exists("sh:sandbox:records")) === 0);
});
afterAll(async () => {
  await remote.process.stop();
  await relay.process.stop();
  await model.process.stop();
  db.disconnect();
  await redis.stop();
  cluster.remove();
});

describe("the same request", () => {
  it("gets opposite verdicts from the two sides, each from its own file", async () => {
    await attached("w1");
    const pods = await start({ SH_REMOTE_SANDBOX: "0", KAGENTI_SANDBOX_POOL_SELECTOR: SELECTOR });
    try {
      const table = await Promise.all([pods.review("ab1", "Alpine"), remote.review("ab2", "Alpine"), pods.review("ab3", "Red Hat"), remote.review("ab4", "Red Hat")]);
      expect(table.map((a) => [a.body.sandbox, a.body.verdict.verdict])).toEqual([
        [{ kind: "pod", name: "sandbox-0" }, "FLAGGED"],
        [{ kind: "remote", name: "w1" }, "CLEAR"],
        [{ kind: "pod", name: "sandbox-0" }, "CLEAR"],
        [{ kind: "remote", name: "w1" }, "FLAGGED"],
      ]);
      expect(table[1]!.body.verdict.reason).toContain("Red Hat Enterprise Linux 9.8");
      expect(table[2]!.body.verdict.reason).toContain("Alpine Linux v3.20");
    } finally {
      await pods.process.stop();
    }
  });

  it("lands on a pod when the flag is on but the selector matches one", async () => {
    await attached("w1");
    const miswired = await start({ KAGENTI_SANDBOX_POOL_SELECTOR: SELECTOR });
    try {
      expect((await miswired.review("mis", "Red Hat")).body).toMatchObject({ sandbox: { kind: "pod" }, verdict: { verdict: "CLEAR" } });
    } finally {
      await miswired.process.stop();
    }
  });
});

describe("a worker", () => {
  it("runs every tool", async () => {
    const w = await attached("w1");
    const at = path.join(w.dir, "d/x.txt");
    const a = await remote.prompt("tools", `write \`one two\` to ${at} then replace \`two\` with \`2\` in ${at} then read ${at} then grep \`one\` in ${at} then find \`*.txt\` in ${w.dir} then list ${w.dir} then run \`echo $((6*7))\``);
    expect(a.body.status).toBe("responded");
    expect(a.body.text).toContain("one 2");
    expect(a.body.text).toContain(`${at}:1:one 2`);
    expect(a.body.text).toContain("d/x.txt");
    expect(a.body.text).toMatch(/42$/);
  });

  it("takes no more leaves than it has room for", async () => {
    await attached("small", 1);
    const first = remote.prompt("room1", "run `sleep 1.5; echo one`");
    await remote.process.line(/"session":"room1".*leaf started/);
    expect((await remote.review("room2", "Alpine")).status).toBe(503);
    expect((await first).body.text).toContain("one");
    expect((await remote.review("room2", "Alpine")).body.status).toBe("done");
  });

  it("that vanishes mid-command fails the leaf with its name in bounded time, and frees the lease", async () => {
    const w = await attached("w1");
    const asked = remote.prompt("gone", "run `sleep 30`");
    await until("the lease is held", async () => (await db.zcard("sh:sandbox:w1:leases")) === 1);
    await remote.process.line(/"session":"gone".*leaf started/);
    await until("the command runs", () => /sleep 30/.test(ps()));
    w.vanish();
    const a = await asked;
    expect(a.body).toMatchObject({ status: "failed", reason: "error", sandbox: { kind: "remote", name: "w1" }, message: expect.stringMatching(/^the sandbox is lost: /) as string });
    expect(await db.zcard("sh:sandbox:w1:leases")).toBe(0);
  });

  it("that is not there is said so", async () => {
    expect((await remote.review("none", "Alpine")).body).toMatchObject({ status: "failed", reason: "error", message: expect.stringMatching(/no Running pods for pool selector .* and no live remote sandbox/) as string });
  });
});

describe("the relay", () => {
  it("refusing the exec token is the leaf's error, without the token in it", async () => {
    await attached("w1");
    const wrong = await start({ SH_RELAY_EXEC_TOKEN: "not-the-token" });
    try {
      const a = await wrong.review("tok", "Alpine");
      expect(a.body).toMatchObject({ status: "failed", reason: "error", message: expect.stringMatching(/^the sandbox is lost: /) as string });
      expect(JSON.stringify(a.body) + wrong.process.output()).not.toContain("not-the-token");
    } finally {
      await wrong.process.stop();
    }
  });

  it("that is down, with a record left behind, is an error in bounded time", async () => {
    await db.hset("sh:sandbox:records", "ghost", JSON.stringify({ sandboxId: "ghost", labels: {}, capabilities: [], capacityMax: 4, transport: "grpc", lastSeenMs: Date.now() }));
    const begun = Date.now();
    const nowhere = await start({ SH_RELAY_ADDR: `127.0.0.1:${await freePort()}` });
    try {
      expect((await nowhere.review("ghost", "Alpine")).body).toMatchObject({ status: "failed", reason: "error", sandbox: { name: "ghost" } });
      expect(Date.now() - begun).toBeLessThan(25_000);
    } finally {
      await nowhere.process.stop();
      await db.hdel("sh:sandbox:records", "ghost");
    }
  });

  it("is the one that a worker is attached to: with two of them, each leaf goes by the presence record", async () => {
    const other = await Relay.start(redis.url, true);
    const both = await start({ SH_RELAY_ADDR_ALLOW: other.exec });
    const only = await start();
    try {
      await attached("here", 1);
      await attached("there", 1, other);
      // Each has room for one leaf, so two at a time use both.
      const pair = await Promise.all([both.review("two1", "Alpine"), both.review("two2", "Alpine")]);
      expect(pair.map((a) => a.body.sandbox.name).sort()).toEqual(["here", "there"]);
      expect(pair.map((a) => a.body.verdict?.verdict)).toEqual(["CLEAR", "CLEAR"]);
      for (const w of workers.splice(0, 1)) w.vanish();
      await until("one is present", async () => (await db.hlen("sh:sandbox:records")) === 1);
      // An address that the settings do not allow is not dialled on a record's word: it may have been put there by anybody.
      expect((await only.review("two3", "Alpine")).body).toMatchObject({ status: "failed", sandbox: { name: "there" } });
      expect(only.process.output()).toContain("not in SH_RELAY_ADDR_ALLOW");
    } finally {
      await both.process.stop();
      await only.process.stop();
      for (const w of workers.splice(0)) w.vanish();
      await until("nobody is present", async () => (await db.exists("sh:sandbox:records")) === 0);
      await other.process.stop();
    }
  });
});

const ps = () => execFileSync("ps", ["-eo", "args"], { encoding: "utf8" });
