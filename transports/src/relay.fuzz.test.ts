// Whatever reaches the relay's listeners, it answers with a gRPC status in bounded time, stays up, and goes on serving. The run prints its
// seed; FUZZ_SEED repeats it, FUZZ_RUNS sets how many inputs each property gets.
import { AbortRequest, Chunk, End, Exec, ExecError, ExecRequest, Hello, WorkerFrame } from "@dialout/proto";
import { Client, credentials, Metadata, status, type ServiceError } from "@grpc/grpc-js";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countFrom, seedFrom } from "./testkit/random";
import { EXEC_TOKEN, WORKER_TOKEN, World } from "./testkit/world";

const seed = seedFrom("FUZZ_SEED");
const numRuns = countFrom("FUZZ_RUNS", 60);
/** A call that may legitimately run on (a command that was really started) is ended after this time. */
const ENOUGH_MS = 1_500;
const raw = (b: Buffer) => b;

let world: World;
let exec: Client;
let attach: Client;
beforeAll(async () => {
  process.stdout.write(`fuzz: seed ${seed}, ${numRuns} inputs each\n`);
  world = await World.start();
  exec = new Client(`127.0.0.1:${world.ports.exec}`, credentials.createInsecure(), { "grpc.max_send_message_length": -1 });
  attach = new Client(`127.0.0.1:${world.ports.attach}`, credentials.createInsecure(), { "grpc.max_send_message_length": -1 });
});
afterAll(async () => {
  exec?.close();
  attach?.close();
  await world?.stop();
});

const check = <T>(property: fc.IAsyncProperty<T>, share = 1): Promise<void> => fc.assert(property, { seed, numRuns: Math.max(1, Math.ceil(numRuns * share)), endOnFailure: true });

/** The status a call ended with; it is cancelled after a while, which is a status too, but not one of a hung server: see `alive`. */
function answer(client: Client, path: string, body: Buffer, metadata: Metadata): Promise<number> {
  return new Promise((resolve) => {
    const call = client.makeServerStreamRequest(path, raw, raw, body, metadata);
    const timer = setTimeout(() => call.cancel(), ENOUGH_MS);
    call.on("data", () => undefined);
    call.on("error", () => undefined);
    call.on("status", (s: { code: number }) => {
      clearTimeout(timer);
      resolve(s.code);
    });
  });
}

async function expectAlive(): Promise<void> {
  expect(world.relay.exit, world.relay.output().slice(-2_000)).toBeUndefined();
  expect(world.worker.exit, world.worker.output().slice(-2_000)).toBeUndefined();
  const t = world.transport();
  expect((await t.exec("echo alive", { timeout: 60 })).stdout.toString()).toBe("alive\n");
  await t.close();
}

const withToken = (token: string) => {
  const m = new Metadata();
  m.set("authorization", `Bearer ${token}`);
  return m;
};

const bytes = fc.uint8Array({ maxLength: 4_000 }).map((b) => Buffer.from(b));
const uint64 = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.constantFrom(0n, 1n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n));
const uint32 = fc.oneof(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.constantFrom(0, 1, 2 ** 31, 2 ** 32 - 1));
const text = fc.oneof(fc.string({ maxLength: 300 }), fc.string({ unit: "binary", maxLength: 80 }), fc.constantFrom("", "\0", "../x", "a".repeat(70_000)));
/** Commands stay harmless, whatever the rest of the message is. */
const command = fc.oneof(fc.constantFrom("", "true", "exit 3", "echo \0", "printf x >&2", ": ".padEnd(140_000, "x")), fc.string({ maxLength: 50 }).map((s) => `: ${JSON.stringify(s)}`));
const execId = fc.oneof(fc.uuid(), text);
const execMessage = fc.record({
  reqId: uint64, command, stdin: bytes, timeoutS: uint32, streaming: fc.boolean(), execId, journalId: text, delivery: uint32,
  resumeStdout: uint64, resumeStderr: uint64, outputCap: uint64, window: uint64, graceS: uint32, traceparent: text,
});
const sandboxId = fc.oneof(fc.constant("sbx-test"), text);

describe("the exec listener", () => {
  const paths = ["Exec", "Abort", "Describe", "Nothing"].map((m) => `/sandbox.v1.SandboxExec/${m}`);

  it("answers arbitrary bytes under every method", async () => {
    await check(fc.asyncProperty(fc.constantFrom(...paths), bytes, async (path, body) => {
      expect(await answer(exec, path, body, withToken(EXEC_TOKEN))).not.toBe(status.CANCELLED);
    }));
    await expectAlive();
  });

  it("answers well-formed requests with arbitrary values", async () => {
    await check(fc.asyncProperty(sandboxId, fc.option(execMessage, { nil: undefined }), async (id, message) => {
      const body = Buffer.from(ExecRequest.encode({ sandboxId: id, exec: message && Exec.fromPartial(message) }).finish());
      expect(await answer(exec, paths[0] as string, body, withToken(EXEC_TOKEN))).not.toBe(status.UNKNOWN);
    }));
    await expectAlive();
  });

  it("refuses arbitrary credentials", async () => {
    const value = fc.oneof(fc.string({ maxLength: 200 }).map((s) => s.replace(/[^\x20-\x7e]/g, "")), fc.constantFrom("", "Bearer", "Bearer ", `bearer${EXEC_TOKEN}`, `Bearer ${WORKER_TOKEN}`, `Bearer ${EXEC_TOKEN} x`, "Bearer " + "x".repeat(6_000)));
    await check(fc.asyncProperty(value, fc.constantFrom(...paths.slice(0, 3)), bytes, async (authorization, path, body) => {
      const m = new Metadata();
      m.set("authorization", authorization);
      expect(await answer(exec, path, body, m)).toBe(status.UNAUTHENTICATED);
    }));
    await expectAlive();
  });
});

describe("the attach listener", () => {
  /** Attaches, sends the frames, and resolves with the status; a session that the relay is content with is ended by us. */
  const session = (frames: Buffer[], token = WORKER_TOKEN): Promise<number> =>
    new Promise((resolve) => {
      const call = attach.makeBidiStreamRequest("/sandbox.v1.SandboxWorker/Attach", raw, raw, withToken(token));
      const timer = setTimeout(() => call.cancel(), 300);
      call.on("data", () => undefined);
      call.on("error", (_: ServiceError) => undefined);
      call.on("status", (s: { code: number }) => {
        clearTimeout(timer);
        resolve(s.code);
      });
      for (const frame of frames) call.write(frame);
    });
  const hello = fc.record({
    sandboxId: fc.oneof(fc.constantFrom("fuzz-1", "fuzz-2"), text), labels: fc.dictionary(text, text, { maxKeys: 3 }), capabilities: fc.array(text, { maxLength: 3 }),
    image: text, arch: text, capacityMax: uint32, trust: text, protocol: uint32, instanceId: text, journalId: text,
  });
  const encode = (msg: WorkerFrame["msg"]) => Buffer.from(WorkerFrame.encode({ msg }).finish());
  const helloFrame = hello.map((h) => encode({ $case: "hello", value: Hello.fromPartial(h) }));
  const frame = fc.oneof(
    bytes,
    helloFrame,
    fc.record({ reqId: uint64, data: bytes, stream: fc.integer({ min: 0, max: 9 }), offset: uint64 }).map((v) => encode({ $case: "chunk", value: Chunk.fromPartial(v) })),
    fc.record({ reqId: uint64, exitCode: fc.integer(), stdoutBytes: uint64 }).map((v) => encode({ $case: "end", value: End.fromPartial(v) })),
    fc.record({ reqId: uint64, message: text, code: text }).map((v) => encode({ $case: "error", value: ExecError.fromPartial(v) })),
    fc.record({ reqId: uint64, state: text }).map((v) => encode({ $case: "accepted", value: v })),
    fc.constant(encode({ $case: "heartbeat", value: {} })),
  );

  it("takes or refuses arbitrary frames, with and without an introduction", async () => {
    await check(fc.asyncProperty(fc.option(helloFrame, { nil: undefined }), fc.array(frame, { maxLength: 6 }), async (first, frames) => {
      expect(await session(first ? [first, ...frames] : frames)).not.toBe(status.UNKNOWN);
    }));
    await expectAlive();
  });

  it("refuses arbitrary tokens", async () => {
    await check(fc.asyncProperty(fc.string({ maxLength: 100 }).map((s) => s.replace(/[^\x21-\x7e]/g, "")), helloFrame, async (token, first) => {
      expect([status.UNAUTHENTICATED, status.INVALID_ARGUMENT]).toContain(await session([first], token));
    }), 0.5);
    await expectAlive();
  });
});

it("an Abort for anything is answered", async () => {
  await check(fc.asyncProperty(sandboxId, uint64, execId, async (id, reqId, eid) => {
    const body = Buffer.from(AbortRequest.encode({ sandboxId: id, reqId, execId: eid }).finish());
    expect([status.OK, status.INVALID_ARGUMENT]).toContain(await answer(exec, "/sandbox.v1.SandboxExec/Abort", body, withToken(EXEC_TOKEN)));
  }), 0.5);
  await expectAlive();
});
