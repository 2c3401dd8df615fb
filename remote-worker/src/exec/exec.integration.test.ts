import { randomBytes, createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "@dialout/common/testkit";
import { startRelay, startWorkerProcess, stopAll, tempDir, type Peer, type Worker } from "../testkit";

afterAll(stopAll);

describe.each([["base", 0], ["protocol 1", 1]] as const)("commands over a %s relay", (_, protocol) => {
  let peer: Peer;
  let worker: Worker;
  beforeAll(async () => {
    const relay = await startRelay(protocol);
    worker = startWorkerProcess(relay, { WORKER_MAX_CONCURRENT: "2", WORKER_QUEUE_MAX: "2", SANDBOX_CWD: "/tmp" });
    peer = await relay.attached();
  });
  const run = (command: string, extra = {}) => peer.exec({ command, ...extra }).done();

  it.each([["true", 0], ["exit 7", 7], ["exit 137", 137], ["exit 255", 255], ["no-such-program-x", 127], ["/etc/passwd", 126]])("%s ends with its own status %i", async (command, code) => {
    const a = await run(command);
    expect([a.end?.exitCode, a.terminals, a.error]).toEqual([code, 1, undefined]);
  });

  it.each(["KILL", "TERM", "SEGV"])("SIG%s from inside is End{-1}", async (name) => {
    const a = await run(`kill -${name} $$; sleep 5`);
    expect(a.end?.exitCode).toBe(-1);
    expect(a.end?.signal).toBe(protocol ? `SIG${name}` : "");
  });

  it("is a fresh bash -c: $0, no positional arguments, no leaked variables, the asked folder", async () => {
    const a = await run('echo "$0|$#|$PWD|${OLDPWD-}|$(compgen -v dialout)|$-"');
    expect(a.out).toBe("bash|0|/tmp|||hBc\n");
  });

  it("takes a command longer than one argument of exec may be", async () => {
    const a = await run(`echo ${"x".repeat(300_000)} | wc -c; echo "$0"; exit 5`);
    expect([a.out, a.end?.exitCode]).toEqual(["300001\nbash\n", 5]);
  });

  it("refuses a command with a NUL byte", async () => {
    expect((await run("echo a\0b")).error?.message).toMatch(/^start bash: .*NUL/);
  });

  it("feeds 3 MiB of standard input byte for byte, and a command may ignore it", async () => {
    const stdin = randomBytes(3 << 20);
    const a = await run("sha256sum | cut -c1-64; exit 3", { stdin });
    expect([a.out.trim(), a.end?.exitCode]).toEqual([createHash("sha256").update(stdin).digest("hex"), 3]);
    expect((await run("exit 4", { stdin })).end?.exitCode).toBe(4);
    expect((await run("head -c 3", { stdin: Buffer.from("abcdef") })).out).toBe("abc");
  });

  it("has an empty standard input otherwise, and /dev/std* can be opened", async () => {
    const a = await run("wc -c; echo to-err >/dev/stderr; echo x | tee /dev/stderr");
    expect([a.out, a.err]).toEqual(["0\nx\n", "to-err\nx\n"]);
    expect((await run("cat /dev/stdin /dev/stdin", { stdin: Buffer.from("in") })).out).toBe("inin");
  });

  it("carries bytes unchanged, NULs and what is no text included, both streams apart (daytonaio/daytona#2606)", async () => {
    const stdin = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    const a = await run("tee /dev/stderr", { stdin });
    expect(Buffer.concat(a.stdout).equals(stdin) && Buffer.concat(a.stderr).equals(stdin)).toBe(true);
  });

  it("keeps chunks to 32 KiB and loses nothing of 20 MiB", async () => {
    const a = await run("head -c 20971520 /dev/zero | tr '\\0' x; echo end >&2");
    expect([a.bytes - 4, a.err, a.end?.exitCode]).toEqual([20 << 20, "end\n", 0]);
    expect(Math.max(...a.offsets.map((o) => o.length))).toBeLessThanOrEqual(32 << 10);
    if (protocol) {
      let at = 0;
      for (const o of a.offsets.filter((x) => x.stream === "stdout")) {
        expect(o.at).toBe(at);
        at += o.length;
      }
    } else expect(a.offsets.every((o) => o.at === 0)).toBe(true);
  });

  it("streams as produced, and coalesces single bytes", async () => {
    const a = peer.exec({ command: "echo first; sleep 30" });
    await until("the first line", () => a.out === "first\n");
    peer.abort((a as unknown as { reqId: bigint }).reqId);
    await a.done();
    const b = await run("for i in {1..3000}; do printf x; done");
    expect(b.bytes).toBe(3000);
    expect(b.offsets.length).toBeLessThan(1500);
  });

  it("holds output until the end when streaming is off, capped at 8 MiB per stream", async () => {
    const a = peer.exec({ command: "head -c 9000000 /dev/zero; echo x >&2; sleep 0.4", streaming: false });
    await a.done();
    const marker = "\n[output truncated]".length; // this caller gave no exec_id
    expect(Buffer.concat(a.stdout).length).toBe((8 << 20) + marker);
    expect([a.err, a.end?.exitCode, a.end?.stdoutTruncated]).toEqual(["x\n", 0, protocol === 1]);
  });

  it("caps each stream at the caller's cap and lets the command end by itself", async () => {
    const a = await run("head -c 500000 /dev/zero; head -c 100 /dev/zero >&2; exit 6", { execId: randomUUID(), outputCap: 1000n });
    expect([Buffer.concat(a.stdout).length, Buffer.concat(a.stderr).length, a.end?.exitCode]).toEqual([1000, 100, 6]);
    if (protocol) expect(a.end).toMatchObject({ stdoutTruncated: true, stderrTruncated: false, stdoutBytes: 500_000n, stderrBytes: 100n });
  });

  it("ends a command that runs into its limit with timeout:<n>, and one without a limit not", async () => {
    const a = await run("echo started; sleep 30", { timeoutS: 1 });
    expect([a.out, a.error?.message, a.end]).toEqual(["started\n", "timeout:1", undefined]);
    if (protocol) expect(a.error).toMatchObject({ code: "timeout", kill: { verified: true, remaining: 0 } });
    expect((await run("sleep 1.2; echo ok", { timeoutS: 0 })).out).toBe("ok\n");
  });

  it("a real status wins over a limit that is reached while a background process holds the pipes", async () => {
    const a = await run("(sleep 1.2; echo late; sleep 20) & exit 9", { timeoutS: 1 });
    expect([a.end?.exitCode, a.error]).toEqual([9, undefined]);
  });

  it("waits for output of a background process up to 2 s of silence, then ends it", async () => {
    const began = Date.now();
    const a = await run("(sleep 0.5; echo late; sleep 50) & echo now");
    expect([a.out, a.end?.exitCode]).toEqual(["now\nlate\n", 0]);
    expect(Date.now() - began).toBeLessThan(15_000);
    if (protocol) expect(a.end?.kill).toMatchObject({ verified: true, remaining: 0 });
  });

  it("queues beyond its places, refuses beyond the queue, and an aborted queued command never runs", async () => {
    const dir = tempDir("worker-queue-");
    const reqs = Array.from({ length: 5 }, (_, i) => peer.exec({ command: `touch ${dir}/${i}; sleep 60` }) as ReturnType<Peer["exec"]> & { reqId: bigint });
    await reqs[4]!.done();
    expect(reqs[4]!.error?.message).toBe("busy: queue full");
    await until("two run", () => existsSync(path.join(dir, "0")) && existsSync(path.join(dir, "1")));
    peer.abort(reqs[3]!.reqId);
    expect((await reqs[3]!.done()).end?.exitCode).toBe(-1);
    peer.abort(reqs[0]!.reqId);
    await until("the queued one runs in the freed place", () => existsSync(path.join(dir, "2")));
    for (const r of reqs.slice(1, 3)) peer.abort(r.reqId);
    for (const r of reqs.slice(0, 3)) expect((await r.done()).end?.exitCode).toBe(-1);
    expect(existsSync(path.join(dir, "3"))).toBe(false);
  });

  it("answers nothing to an abort of an unknown id and stays healthy", async () => {
    peer.abort(123n);
    peer.send({ $case: "credit", value: { reqId: 123n, bytes: 5n } });
    peer.send({ $case: "detach", value: { reqId: 123n } });
    expect((await run("echo ok")).out).toBe("ok\n");
    expect(peer.frames.some((f) => (f.msg?.value as { reqId?: bigint }).reqId === 123n)).toBe(false);
  });

  it("passes the trace on and logs the command by id, never by text", async () => {
    const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    const execId = randomUUID();
    const a = await run("echo $TRACEPARENT; : s3cr3t-in-command", { traceparent, execId, stdin: Buffer.from("s3cr3t-in-stdin") });
    expect(a.out.trim()).toBe(traceparent);
    await worker.process.line(new RegExp(`"exec_id":"${execId}".*"msg":"exec ended"`));
    expect(worker.process.output()).not.toMatch(/s3cr3t|test-token/);
  });
});
