import { Stream, type Exec } from "@dialout/proto";
import { status } from "@grpc/grpc-js";
import { until } from "@dialout/common/testkit";
import { afterEach, describe, expect, it } from "vitest";
import { TransportError } from "./errors";
import { GrpcRelayTransport, type GrpcRelayOptions } from "./relay";
import { settled } from "./testkit/settled";
import { accepted, chunk, end, error, fail, GrpcFailure, reply, ScriptedRelay, type ExecCall, type Script } from "./testkit/scripted-relay";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const o of open.splice(0).reverse()) await o.close();
});

async function setup(script: Script, options: Partial<GrpcRelayOptions> = {}) {
  const relay = await new ScriptedRelay({ describe: () => ({}), ...script }).start();
  const transport = new GrpcRelayTransport({ addr: relay.addr, sandboxId: "sbx-1", execToken: "exec-token", graceMs: 3_000, abortWaitMs: 500, slackMs: 200, floodMs: 200, ...options });
  open.push({ close: () => relay.kill() }, transport);
  return { relay, transport };
}

const rejection = (p: Promise<unknown>): Promise<TransportError> => p.then(() => expect.fail("it resolved"), (e: unknown) => e as TransportError);
const kill = { found: 2, killed: 2, remaining: 0, verified: true, detail: "" };

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

describe("stopping", () => {
  it("an already aborted signal reaches nobody", async () => {
    const { relay, transport } = await setup({});
    expect(await rejection(transport.exec("true", { signal: AbortSignal.abort() }))).toMatchObject({ code: "aborted", message: "aborted", kill: { verified: true } });
    expect(relay.execs).toHaveLength(0);
  });

  it("abort waits for the terminal event and hands over its kill report", async () => {
    let call: ExecCall | undefined;
    const { relay, transport } = await setup({
      exec: (x, c) => void (call = c).write(chunk(x, "tick", 0)),
      abort: (a) => call && reply(call, end({ reqId: a.reqId } as Exec, -1, { kill })),
    });
    const stop = new AbortController();
    const e = await rejection(transport.exec("c", { signal: stop.signal, onData: () => stop.abort() }));
    expect(e).toMatchObject({ code: "aborted", message: "aborted", kill });
    expect(relay.aborts[0]).toMatchObject({ sandboxId: "sbx-1", execId: relay.execs[0]?.execId, reqId: relay.execs[0]?.reqId });
  });

  it("abort that nobody confirms is unverified, in bounded time", async () => {
    const { relay, transport } = await setup({ exec: (x, c) => void c.write(accepted(x)) });
    const stop = new AbortController();
    const outcome = rejection(transport.exec("c", { signal: stop.signal }));
    await until("it runs", () => relay.execs.length === 1);
    stop.abort();
    const e = await outcome;
    expect(e).toMatchObject({ code: "aborted", kill: { verified: false } });
    expect(e.kill?.detail).toMatch(/^unverified/);
  });

  it("our own timer works when the other end is frozen, and says the number that was asked for", async () => {
    const { transport } = await setup({ exec: () => undefined });
    const before = Date.now();
    expect(await rejection(transport.exec("c", { timeout: 1.5 }))).toMatchObject({ code: "timeout", message: "timeout:1.5", kill: { verified: false } });
    expect(Date.now() - before).toBeLessThan(5_000);
  });

  it("a rejected listener aborts the command and is what the caller gets", async () => {
    let call: ExecCall | undefined;
    const { transport } = await setup({
      exec: (x, c) => void (call = c).write(chunk(x, "x", 0)),
      abort: (a) => call && reply(call, end({ reqId: a.reqId } as Exec, -1)),
    });
    await expect(transport.exec("c", { onData: () => Promise.reject(new Error("disk full")) })).rejects.toThrow("disk full");
    await expect(transport.exec("c", { onData: () => { throw new Error("bug"); } })).rejects.toThrow("bug");
  });

  it("close ends what runs, twice is once, and nothing starts afterwards", async () => {
    let call: ExecCall | undefined;
    const { relay, transport } = await setup({
      exec: (x, c) => void (call = c).write(accepted(x)),
      abort: (a) => call && reply(call, end({ reqId: a.reqId } as Exec, -1, { kill })),
    });
    const running = rejection(transport.exec("sleep 100"));
    await until("it runs", () => relay.execs.length === 1);
    await Promise.all([transport.close(), transport.close()]);
    expect(await running).toMatchObject({ code: "closed", kill });
    expect(await rejection(transport.exec("true"))).toMatchObject({ code: "closed" });
  });
});

describe("redelivery", () => {
  it("continues from the received offsets with the same ids, dropping what it already has", async () => {
    const { relay, transport } = await setup({
      exec: (x, call, nth) => {
        if (nth === 1) {
          call.write(chunk(x, "0123", 0));
          call.write(chunk(x, "err", 0, Stream.STREAM_STDERR), () => fail(call, status.UNAVAILABLE, "going away"));
          return;
        }
        call.write(accepted(x));
        call.write(chunk(x, "23456789", 2));
        call.write(end(x, 0, { stdoutBytes: 10n, stderrBytes: 3n, replayed: true }));
        call.end();
      },
    });
    const r = await transport.exec("c");
    expect(r).toMatchObject({ exitCode: 0, deliveries: 2, replayed: true });
    expect(r.stdout.toString()).toBe("0123456789");
    const [first, second] = relay.execs as [Exec, Exec];
    expect(second).toMatchObject({ reqId: first.reqId, execId: first.execId, delivery: 2, resumeStdout: 4n, resumeStderr: 3n });
  });

  it("survives a relay that dies and comes back on the same port", async () => {
    const script: Script = {
      describe: () => ({}),
      exec: (x, call, nth) => {
        if (nth === 1) return void call.write(chunk(x, "one ", 0));
        call.write(chunk(x, "two", 4));
        call.write(end(x, 0, { stdoutBytes: 7n }));
        call.end();
      },
    };
    const { relay, transport } = await setup(script);
    const r = transport.exec("c", { onData: (c) => (String(c) === "one " ? (relay.kill(), void relay.start()) : undefined) });
    expect((await r).stdout.toString()).toBe("one two");
  });

  it.each(["worker disconnected"])("after %j waits for the worker and asks again", async (message) => {
    const { transport } = await setup({
      exec: (x, call, nth) => {
        if (nth === 1) reply(call, accepted(x), error(x, message, "disconnected"));
        else if (nth === 2) fail(call, status.NOT_FOUND, "no live worker for sandbox 'sbx-1'");
        else reply(call, error(x, "interrupted: the worker restarted", "interrupted"));
      },
    });
    expect(await rejection(transport.exec("c"))).toMatchObject({ code: "interrupted", deliveries: 3 });
  });

  it("keeps the first news when the grace time ends", async () => {
    const { transport } = await setup({
      exec: (x, call, nth) => {
        if (nth === 1) reply(call, accepted(x), error(x, "worker disconnected", "disconnected"));
        else fail(call, status.NOT_FOUND, "no live worker for sandbox 'sbx-1'");
      },
    }, { graceMs: 400 });
    expect(await rejection(transport.exec("c"))).toMatchObject({ code: "disconnected", message: "worker disconnected", retryable: true, kill: { verified: false } });
  });

  it("a gap in the output is output_lost and the command is aborted", async () => {
    const { relay, transport } = await setup({ exec: (x, call) => (call.write(chunk(x, "a", 0)), void call.write(chunk(x, "c", 2))) });
    expect(await rejection(transport.exec("c"))).toMatchObject({ code: "output_lost" });
    expect(relay.aborts).toHaveLength(1);
  });

  it("an end that counts more bytes than arrived is output_lost", async () => {
    const { transport } = await setup({ exec: (x, call) => reply(call, chunk(x, "a", 0), end(x, 0, { stdoutBytes: 5n })) });
    expect(await rejection(transport.exec("c"))).toMatchObject({ code: "output_lost", message: "output_lost: stdout ended at byte 1 of 5" });
  });

  it("a replaced worker is described anew on delivery 1, and means interrupted on a redelivery", async () => {
    const journals = (nth: number) => ({ journalId: `journal-${nth}` });
    const mismatch = (x: Exec, call: ExecCall) => reply(call, error(x, "other journal", "journal_mismatch"));
    const fresh = await setup({ describe: journals, exec: (x, call, nth) => (nth === 1 ? mismatch(x, call) : reply(call, end(x, 0))) });
    expect(await fresh.transport.exec("c")).toMatchObject({ exitCode: 0 });
    expect(fresh.relay.execs[1]).toMatchObject({ journalId: "journal-2", delivery: 1 });

    const lost = await setup({ describe: journals, exec: (x, call, nth) => (nth === 1 ? fail(call, status.UNAVAILABLE, "") : mismatch(x, call)) });
    expect(await rejection(lost.transport.exec("c"))).toMatchObject({ code: "interrupted" });
  });

  it("stays with the journal of its first delivery, even when another command has learnt of a new worker", async () => {
    const { relay, transport } = await setup({
      describe: (nth) => ({ journalId: `journal-${nth}` }),
      exec: (x, call, nth) => {
        if (x.command === "other") return nth === 2 ? reply(call, error(x, "other journal", "journal_mismatch")) : reply(call, end(x, 0));
        if (nth === 1) return void call.write(accepted(x));
        reply(call, x.journalId === "journal-1" ? error(x, "other journal", "journal_mismatch") : end(x, 0));
      },
    });
    const first = rejection(transport.exec("first"));
    await until("it runs", () => relay.execs.length === 1);
    expect(await transport.exec("other")).toMatchObject({ exitCode: 0 });
    expect(relay.execs.at(-1)?.journalId).toBe("journal-2");
    relay.kill();
    await relay.start();
    expect(await first).toMatchObject({ code: "interrupted" });
  });

  it("takes another req_id when its own is in use", async () => {
    const { relay, transport } = await setup({ exec: (x, call, nth) => (nth === 1 ? void fail(call, status.ALREADY_EXISTS, "req_id 1 already in flight for sandbox 'sbx-1'") : reply(call, end(x, 0))) });
    expect(await transport.exec("c")).toMatchObject({ exitCode: 0 });
    expect(relay.execs[1]?.reqId).not.toBe(relay.execs[0]?.reqId);
    expect(relay.execs[1]?.delivery).toBe(1);
  });

  it("does not start a command that was aborted while the link was down", async () => {
    const { relay, transport } = await setup({}, { abortWaitMs: 2_000 });
    const stop = new AbortController();
    const outcome = rejection(transport.exec("c", { signal: stop.signal }));
    await until("it was delivered", () => relay.execs.length === 1);
    relay.kill();
    await new Promise((r) => setTimeout(r, 200));
    stop.abort();
    await relay.start();
    expect(await outcome).toMatchObject({ code: "aborted", kill: { verified: false } });
    await settled(() => relay.execs.length);
    expect(relay.execs).toHaveLength(1);
  });

  it("tells where nobody is attached, in the time for a first contact", async () => {
    const { transport } = await setup({ describe: () => new GrpcFailure(status.NOT_FOUND, "no live worker for sandbox 'sbx-1'") }, { connectMs: 300 });
    expect(await rejection(transport.exec("c"))).toMatchObject({ code: "not_found", retryable: true, deliveries: 0, message: expect.stringMatching(/^no live worker for sandbox 'sbx-1'.*attached, serving execs/) });
  });
});

describe("a base relay", () => {
  const base: Script = { describe: undefined };

  it("gets no additions, and a deadline", async () => {
    let deadline: unknown;
    const { relay, transport } = await setup({ ...base, exec: (x, call) => ((deadline = call.getDeadline()), call.write(chunk(x, "a", 0)), call.write(chunk(x, "b", 0)), call.write(end(x, 3)), call.end()) });
    const r = await transport.exec("c", { timeout: 5, traceparent: "t" });
    expect(r).toMatchObject({ exitCode: 3 });
    expect(r.stdout.toString()).toBe("ab");
    expect(relay.execs[0]).toMatchObject({ execId: "", journalId: "", delivery: 0, outputCap: 0n, graceS: 0, traceparent: "", timeoutS: 5 });
    expect(Number(deadline)).toBeLessThan(Date.now() + 10_000);
  });

  it("is never asked twice", async () => {
    const { relay, transport } = await setup({ ...base, exec: (x, call) => reply(call, error(x, "worker disconnected")) });
    expect(await rejection(transport.exec("c"))).toMatchObject({ code: "disconnected", message: "worker disconnected", retryable: true });
    expect(relay.execs).toHaveLength(1);
  });

  it("that closes early means exit code null", async () => {
    const { transport } = await setup({ ...base, exec: (x, call) => reply(call, chunk(x, "a", 0)) });
    expect(await transport.exec("c")).toMatchObject({ exitCode: null, truncated: false });
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
