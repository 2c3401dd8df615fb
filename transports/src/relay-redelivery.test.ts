import { Stream, type Exec } from "@dialout/proto";
import { status } from "@grpc/grpc-js";
import { until } from "@dialout/common/testkit";
import { describe, expect, it } from "vitest";
import { rejection, setup } from "./testkit/relay-setup";
import { settled } from "./testkit/settled";
import { accepted, chunk, end, error, fail, GrpcFailure, reply, type ExecCall, type Script } from "./testkit/scripted-relay";

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
