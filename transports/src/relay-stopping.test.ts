import { type Exec } from "@dialout/proto";
import { until } from "@dialout/common/testkit";
import { describe, expect, it } from "vitest";
import { kill, rejection, setup } from "./testkit/relay-setup";
import { accepted, chunk, end, reply, type ExecCall } from "./testkit/scripted-relay";

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
