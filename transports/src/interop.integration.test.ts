// Ours against peers that were written from the base protocol alone (testkit/base), in every role. Whatever we add must not be seen by them.
import { startProgram, until, type Running } from "@dialout/common/testkit";
import { status } from "@grpc/grpc-js";
import Redis from "ioredis";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GrpcRelayTransport } from "./relay";
import { BaseCaller, BaseRelay, BaseWorker } from "./testkit/base/peer";
import { processesNaming } from "./testkit/processes";
import { EXEC_TOKEN, WORKER_TOKEN, World } from "./testkit/world";

let nextId = 100;
const exec = (command: string, more: Record<string, unknown> = {}) => ({ req_id: nextId++, command, streaming: true, ...more });

describe("a base caller with our relay and worker", () => {
  let world: World, caller: BaseCaller;
  beforeAll(async () => {
    world = await World.start({ relay: { SH_RELAY_EXEC_AUTH: "off" } });
    caller = new BaseCaller(`127.0.0.1:${world.ports.exec}`);
  });
  afterAll(async () => {
    caller?.close();
    await world?.stop();
  });
  const run = (command: string, more?: Record<string, unknown>) => caller.exec(world.sandboxId, exec(command, more));

  it("gets streams apart, stdin to its end, and the exit code", async () => {
    const r = await run("cat; echo err >&2; exit 7", { stdin: Buffer.from("in\n") });
    expect(r).toMatchObject({ stdout: "in\n", stderr: "err\n", exitCode: 7, status: status.OK });
    expect(r.events.filter((e) => e === "end" || e === "error")).toEqual(["end"]);
  });

  it("sees no event that its protocol does not have", async () => {
    const r = await run("seq 1 20000");
    expect(r.stdout.endsWith("\n20000\n")).toBe(true);
    expect(new Set(r.events)).toEqual(new Set(["chunk", "end"]));
  });

  it("gets output only at the end without streaming", async () => {
    const r = await run("echo a; echo b >&2", { streaming: false });
    expect(r).toMatchObject({ stdout: "a\n", stderr: "b\n", exitCode: 0 });
  });

  it("gets `timeout:<n>` as an event, and OK", async () => {
    expect(await run("sleep 600", { timeout_s: 1 })).toMatchObject({ error: "timeout:1", status: status.OK });
  });

  it("Abort: the exec ends with -1 and its process is gone", async () => {
    const mark = world.file("aborted");
    const e = exec(`echo go; exec -a '${mark}' sleep 600.5`);
    let answered: Promise<void> | undefined;
    const outcome = await caller.exec(world.sandboxId, e, () => (answered ??= caller.abort(world.sandboxId, e.req_id)));
    expect(outcome).toMatchObject({ stdout: "go\n", exitCode: -1, status: status.OK });
    await answered;
    expect(processesNaming(mark)).toEqual([]);
  });

  it("a cancelled call ends the command too", async () => {
    const e = exec(`echo go; exec -a '${world.file("cancelled")}' sleep 600.25`);
    const r = await caller.exec(world.sandboxId, e, (_, call) => call.cancel());
    expect(r.status).toBe(status.CANCELLED);
    await until("the command is gone", () => processesNaming(world.file("cancelled")).length === 0);
  });

  it("a second exec of an id in flight is refused with a status, and the first is not harmed", async () => {
    const e = exec("echo first; read -r _ < <(sleep 2); echo done");
    let second: ReturnType<BaseCaller["exec"]> | undefined;
    const first = await caller.exec(world.sandboxId, e, () => (second ??= caller.exec(world.sandboxId, { ...e, command: "echo other" })));
    expect(first).toMatchObject({ stdout: "first\ndone\n", exitCode: 0 });
    const refused = await second;
    expect(refused?.status).not.toBe(status.OK);
    expect(refused?.details).toContain(`req_id ${e.req_id} already in flight`);
  });

  it("an unknown worker and a request without exec end with a status at once", async () => {
    expect(await caller.exec("nobody", exec("true"))).toMatchObject({ status: status.NOT_FOUND, details: expect.stringContaining("no live worker for sandbox 'nobody'") as string });
    expect(await caller.exec(world.sandboxId, undefined)).toMatchObject({ status: status.INVALID_ARGUMENT, details: expect.stringContaining("ExecRequest missing exec field") as string });
    await expect(caller.abort("nobody", 1)).resolves.toBeUndefined();
  });
});

describe("a base caller, and a relay without the compatibility switch", () => {
  let world: World;
  beforeAll(async () => void (world = await World.start()));
  afterAll(() => world?.stop());

  it.each([["no token", undefined], ["the worker's token", WORKER_TOKEN]])("%s is refused, and nothing runs", async (_, token) => {
    const caller = new BaseCaller(`127.0.0.1:${world.ports.exec}`, token);
    const r = await caller.exec(world.sandboxId, exec(`echo ran >> '${world.file("ran")}'`));
    expect(r).toMatchObject({ status: status.UNAUTHENTICATED, events: [] });
    caller.close();
    const allowed = new BaseCaller(`127.0.0.1:${world.ports.exec}`, EXEC_TOKEN);
    expect(await allowed.exec(world.sandboxId, exec(`cat '${world.file("ran")}'`))).toMatchObject({ stdout: "", exitCode: 1 });
    allowed.close();
  });

  describe("with a base worker", () => {
    const hello = { sandbox_id: "sbx-base", capabilities: ["bash", "base64", "file"], image: "img", arch: "amd64", capacity_max: 4, trust: "trusted" };
    let worker: BaseWorker, transport: GrpcRelayTransport;
    /** Answers by the command's first word; `hang` waits for its abort. */
    const serve: ConstructorParameters<typeof BaseWorker>[3] = (f, send) => {
      if (f.msg === "abort") send({ end: { req_id: f.abort.req_id, exit_code: -1 } });
      if (f.msg !== "exec") return;
      const { req_id, command, stdin } = f.exec as { req_id: string; command: string; stdin: Buffer };
      if (command === "hang") return send({ chunk: { req_id, data: Buffer.from("hanging\n"), stream: "STREAM_STDOUT" } });
      if (command === "fail") return send({ error: { req_id, message: "timeout:9" } });
      // 0 in the stream's place means stdout
      send({ chunk: { req_id, data: stdin.length ? stdin : Buffer.from("out\n"), stream: "STREAM_UNSPECIFIED" } });
      send({ chunk: { req_id, data: Buffer.from("err\n"), stream: "STREAM_STDERR" } });
      send({ end: { req_id, exit_code: 5 } });
    };
    beforeAll(async () => {
      worker = new BaseWorker(`127.0.0.1:${world.ports.attach}`, WORKER_TOKEN, hello, serve);
      transport = world.transport({ sandboxId: "sbx-base" });
      await world.relay.line(/sbx-base/);
    });
    afterAll(() => worker?.close());

    it("stands in Redis as the contract has it", async () => {
      const redis = new Redis(world.redis.url);
      try {
        const record = await until("a record", async () => (await redis.hget("sh:sandbox:records", "sbx-base")) ?? undefined);
        expect(record.startsWith('{"sandboxId":"sbx-base","labels":{},"capabilities":["bash","base64","file"],"capacityMax":4,"transport":"grpc"')).toBe(true);
      } finally {
        redis.disconnect();
      }
    });

    it("serves our transport: streams, stdin, exit code", async () => {
      expect(await transport.exec("anything")).toMatchObject({ stdout: Buffer.from("out\n"), stderr: Buffer.from("err\n"), exitCode: 5 });
      expect((await transport.exec("anything", { stdin: Buffer.from([0, 255, 10]) })).stdout).toEqual(Buffer.from([0, 255, 10]));
    });

    it("its timeout is a timeout", async () => {
      await expect(transport.exec("fail", { timeout: 9 })).rejects.toMatchObject({ code: "timeout", message: expect.stringContaining("timeout:9") as string });
    });

    it("is aborted, and what it cannot promise is reported as unverified", async () => {
      const stop = new AbortController();
      const outcome = transport.exec("hang", { signal: stop.signal, onData: () => stop.abort() });
      await expect(outcome).rejects.toMatchObject({ code: "aborted", kill: { verified: false } });
      expect(worker.frames.some((f) => f.msg === "abort")).toBe(true);
    });

    it("was sent nothing that its protocol does not have", () => {
      expect(worker.frames.length).toBeGreaterThan(4);
      expect(worker.frames.map((f) => f.msg as string).filter((m) => m !== "exec" && m !== "abort")).toEqual([]);
    });

    it("is told by a status when its token is wrong", async () => {
      const stranger = new BaseWorker(`127.0.0.1:${world.ports.attach}`, "wrong", { ...hello, sandbox_id: "sbx-stranger" }, serve);
      expect((await until("its stream ends", () => stranger.ended)).code).toBe(status.UNAUTHENTICATED);
      stranger.close();
    });
  });
});

describe("our worker and our transport with a base relay", () => {
  const dir = mkdtempSync(path.join(tmpdir(), "dialout-interop-"));
  let relay: BaseRelay, worker: Running, transport: GrpcRelayTransport;
  beforeAll(async () => {
    relay = await new BaseRelay().start();
    worker = startProgram("remote-worker", { RELAY_ADDR: `127.0.0.1:${relay.port}`, SANDBOX_ID: "sbx-ours", SANDBOX_TOKEN: "t0ken", WORKER_STATE_DIR: dir });
    transport = new GrpcRelayTransport({ addr: `127.0.0.1:${relay.port}`, sandboxId: "sbx-ours" });
    await relay.hello();
  });
  afterAll(async () => {
    await transport?.close();
    await worker?.stop("SIGTERM");
    relay?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  it("says hello with its token and the base fields", async () => {
    expect(relay.authorization).toBe("Bearer t0ken");
    expect(await relay.hello()).toMatchObject({ sandbox_id: "sbx-ours", arch: expect.stringMatching(/^(amd64|arm64)$/) as string, capabilities: expect.arrayContaining(["bash"]) as string[] });
  });

  it("runs commands: streams, stdin, exit code", async () => {
    expect(await transport.exec("cat; echo err >&2; exit 3", { stdin: Buffer.from("in\n") })).toMatchObject({ stdout: Buffer.from("in\n"), stderr: Buffer.from("err\n"), exitCode: 3 });
  });

  it("keeps the time limit", async () => {
    await expect(transport.exec("sleep 600", { timeout: 1 })).rejects.toMatchObject({ code: "timeout" });
  });

  it("ends an aborted command", async () => {
    const stop = new AbortController();
    const mark = path.join(dir, "hang");
    await expect(transport.exec(`echo; exec -a '${mark}' sleep 600.75`, { signal: stop.signal, onData: () => stop.abort() })).rejects.toMatchObject({ code: "aborted" });
    await until("the command is gone", () => processesNaming(mark).length === 0);
  });

  it("sent the relay nothing that its protocol does not have", () => {
    expect(new Set(relay.fromWorker.map((f) => f.msg as string | undefined))).toEqual(new Set(["hello", "chunk", "end", "error"]));
  });
});
