import { Stream, type Exec } from "@dialout/proto";
import { status } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { kill, rejection, setup } from "./testkit/relay-setup";
import { settled } from "./testkit/settled";
import { accepted, chunk, end, error, fail, reply, type ExecCall } from "./testkit/scripted-relay";

describe("one delivery", () => {
  it("splits streams, tells the listener, returns the status, sends the credential and the additions", async () => {
    const { relay, transport } = await setup({
      exec: (x, call) => {
        call.write(accepted(x));
        call.write(chunk(x, "out", 0));
        call.write(chunk(x, Buffer.from([0, 255]), 0, Stream.STREAM_STDERR));
        call.write(end(x, 7, { stdoutBytes: 3n, stderrBytes: 2n }));
        call.end();
      },
    });
    const told: [string, string][] = [];
    const r = await transport.exec("cmd", { stdin: Buffer.from([0, 1]), timeout: 2.5, outputCap: 100, traceparent: "00-a-b-01", onData: (c, s) => void told.push([c.toString("hex"), s]) });
    expect(r).toMatchObject({ exitCode: 7, truncated: false, stderrTruncated: false, deliveries: 1 });
    expect(r.stdout.toString()).toBe("out");
    expect(r.stderr).toEqual(Buffer.from([0, 255]));
    expect(told).toEqual([["6f7574", "stdout"], ["00ff", "stderr"]]);
    expect(relay.tokens).toEqual(["Bearer exec-token"]);
    expect(relay.execs[0]).toMatchObject({ command: "cmd", timeoutS: 3, streaming: true, delivery: 1, journalId: "journal-1", execId: r.execId, outputCap: 101n, graceS: 3, traceparent: "00-a-b-01" });
    expect(relay.execs[0]?.stdin).toEqual(Buffer.from([0, 1]));
  });

  it.each([[undefined, 1800], [0, 0], [0.2, 1], [7, 7]])("timeout %s goes out as timeout_s %s", async (timeout, sent) => {
    const { relay, transport } = await setup({ exec: (x, call) => reply(call, end(x, 0)) });
    await transport.exec("true", { timeout });
    expect(relay.execs[0]?.timeoutS).toBe(sent);
  });

  it("gives null for a negative exit code", async () => {
    const { transport } = await setup({ exec: (x, call) => reply(call, end(x, -1)) });
    expect((await transport.exec("true")).exitCode).toBe(null);
  });

  it.each([
    ["timeout:4", "timeout", "timeout", "timeout:9"],
    ["timeout:4", "", "timeout", "timeout:9"],
    ["busy: queue full", "", "busy", "busy: queue full"],
    ["start bash: ENOENT", "", "spawn", "start bash: ENOENT"],
    ["req_id collision: a different command is already in flight for this id", "", "collision", "req_id collision: a different command is already in flight for this id"],
    ["interrupted: the worker restarted", "interrupted", "interrupted", "interrupted: the worker restarted"],
    ["something new", "something_new", "internal", "something new"],
  ])("error %j with code %j rejects with %s", async (message, wire, code, shown) => {
    const { transport } = await setup({ exec: (x, call) => reply(call, error(x, message, wire, { kill })) });
    expect(await rejection(transport.exec("true", { timeout: 9 }))).toMatchObject({ name: "TransportError", code, message: shown, kill, deliveries: 1 });
  });

  it.each([
    [status.UNAUTHENTICATED, "bad token", "unauthenticated", /SH_RELAY_EXEC_TOKEN/],
    [status.INVALID_ARGUMENT, "timeout_s too large", "invalid", /^timeout_s too large$/],
    [status.RESOURCE_EXHAUSTED, "too many execs", "resource_exhausted", /^too many execs$/],
  ])("status %s is final", async (code, details, mapped, text) => {
    const { relay, transport } = await setup({ exec: (_x, call) => void fail(call, code, details) });
    const e = await rejection(transport.exec("true"));
    expect(e.code).toBe(mapped);
    expect(e.message).toMatch(text);
    expect(e.message).not.toContain("exec-token");
    expect(relay.execs).toHaveLength(1);
  });
});

it("refuses an input that no relay takes, before anything is sent", async () => {
  const { relay, transport } = await setup({});
  expect(await rejection(transport.exec("cat", { stdin: Buffer.alloc(16 << 20) }))).toMatchObject({ code: "invalid", message: expect.stringMatching(/in pieces/) });
  expect(relay.execs).toHaveLength(0);
});

describe("caps", () => {
  const flood = (n: number, stream = Stream.STREAM_STDOUT) => (x: Exec, call: ExecCall) => {
    call.write(chunk(x, "x".repeat(n), 0, stream));
    call.write(end(x, 0, stream === Stream.STREAM_STDOUT ? { stdoutBytes: BigInt(n) } : { stderrBytes: BigInt(n) }));
    call.end();
  };

  it("does not trip at exactly the cap", async () => {
    const { transport } = await setup({ exec: flood(10) });
    expect(await transport.exec("c", { outputCap: 10 })).toMatchObject({ truncated: false, exitCode: 0 });
  });

  it("trips one byte later: marker, no exit code, and the listener sees the same text", async () => {
    const { transport } = await setup({ exec: flood(11) });
    let told = "";
    const r = await transport.exec("c", { outputCap: 10, onData: (c) => void (told += c) });
    expect(r).toMatchObject({ truncated: true, exitCode: null, stderrTruncated: false });
    expect(r.stdout.toString()).toBe(`${"x".repeat(10)}\n[output truncated]`);
    expect(told).toBe(r.stdout.toString());
  });

  it("a cut stderr keeps the exit code", async () => {
    const { transport } = await setup({ exec: flood(11, Stream.STREAM_STDERR) });
    expect(await transport.exec("c", { outputCap: 10 })).toMatchObject({ truncated: false, stderrTruncated: true, exitCode: 0 });
  });

  it("takes the worker's own cut for its own", async () => {
    const { transport } = await setup({ exec: (x, call) => reply(call, chunk(x, "abc", 0), end(x, 0, { stdoutTruncated: true, stdoutBytes: 99n })) });
    const r = await transport.exec("c");
    expect(r).toMatchObject({ truncated: true, exitCode: null });
    expect(r.stdout.toString()).toBe("abc\n[output truncated]");
  });

  it("aborts a command that floods on, and resolves with what it kept and the kill report", async () => {
    let call: ExecCall | undefined;
    const { relay, transport } = await setup({
      exec: (x, c) => void (call = c).write(chunk(x, "x".repeat(50), 0)),
      abort: (a) => call && reply(call, end({ reqId: a.reqId } as Exec, -1, { kill })),
    });
    const r = await transport.exec("yes", { outputCap: 10 });
    expect(r).toMatchObject({ truncated: true, exitCode: null, kill });
    expect(relay.aborts).toHaveLength(1);
  });
});

it("a listener that takes its time holds the relay back", async () => {
  const piece = "x".repeat(32 * 1024);
  let written = 0;
  const { transport } = await setup({
    exec: (x, call) => {
      const pump = () => {
        while (written < 600) if (!call.write(chunk(x, piece, written++ * piece.length))) return void call.once("drain", pump);
        call.write(end(x, 0));
        call.end();
      };
      pump();
    },
  });
  let release: () => void = () => undefined;
  const stalled = new Promise<void>((resolve) => (release = resolve));
  const r = transport.exec("c", { onData: () => stalled, outputCap: 100 * 1024 * 1024 });
  await settled(() => written);
  expect(written).toBeLessThan(300);
  release();
  expect((await r).stdout.length).toBe(600 * piece.length);
});
