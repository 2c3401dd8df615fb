// The transport against links that fail, with a scripted relay behind them. The same with the real programs: redelivery.integration.test.ts.
import type { Exec } from "@dialout/proto";
import { until } from "@dialout/common/testkit";
import { afterEach, describe, expect, it } from "vitest";
import { GrpcRelayTransport, type GrpcRelayOptions } from "./relay";
import { accepted, chunk, end, reply, ScriptedRelay, type ExecCall } from "./testkit/scripted-relay";
import { TcpProxy } from "./testkit/tcp-proxy";

const DATA = Buffer.from(Array.from({ length: 200_000 }, (_, i) => i % 251));
const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const o of open.splice(0).reverse()) await o.close();
});

/** A relay whose command writes half of DATA, waits for `go`, and then writes the rest; a redelivery continues where it is told to. */
async function world(options: Partial<GrpcRelayOptions> = {}) {
  let go: () => void = () => undefined;
  const gone = new Promise<void>((resolve) => (go = resolve));
  let runs = 0;
  const send = (x: Exec, call: ExecCall, from: number, to: number) => {
    for (let at = from; at < to; at += 32_768) call.write(chunk(x, DATA.subarray(at, Math.min(to, at + 32_768)), at));
  };
  const relay = await new ScriptedRelay({
    describe: () => ({}),
    exec: (x, call) => {
      if (x.delivery === 1) runs++;
      call.write(accepted(x));
      const from = Number(x.resumeStdout);
      send(x, call, from, DATA.length / 2);
      void gone.then(() => {
        send(x, call, Math.max(from, DATA.length / 2), DATA.length);
        reply(call, end(x, 5, { stdoutBytes: BigInt(DATA.length) }));
      });
    },
  }).start();
  const proxy = await new TcpProxy(relay).start();
  const transport = new GrpcRelayTransport({ addr: proxy.addr, sandboxId: "s", graceMs: 8_000, keepaliveMs: 400, ...options });
  open.push({ close: () => relay.kill() }, { close: () => proxy.stop() }, transport);
  let received = 0;
  const outcome = transport.exec("c", { onData: (c) => void (received += c.length) });
  outcome.catch(() => undefined);
  await until("half of the output is here", () => received === DATA.length / 2);
  return { relay, proxy, outcome, go, runs: () => runs };
}

const expectWhole = (r: Awaited<ReturnType<GrpcRelayTransport["exec"]>>) => {
  expect(r.exitCode).toBe(5);
  expect(r.stdout.equals(DATA)).toBe(true);
};

describe("a link that fails in mid-output is healed by a redelivery, byte for byte", () => {
  it.each(["cut", "reset", "black hole", "half-close"])("%s", async (fault) => {
    const { relay, proxy, outcome, go, runs } = await world();
    if (fault === "cut") proxy.cut();
    if (fault === "reset") proxy.reset();
    if (fault === "half-close") proxy.halfClose("down");
    if (fault === "black hole") {
      proxy.set({ kind: "black-hole" });
      // Noticed by pings alone: the proxy heals only for a new connection, as after a change of network.
      await until("the transport dials anew", () => proxy.accepted > 1, 10_000);
    }
    go();
    proxy.heal();
    const r = await outcome;
    expectWhole(r);
    expect(r.deliveries).toBeGreaterThan(1);
    expect(runs()).toBe(1);
    expect(new Set(relay.execs.map((x) => `${x.reqId} ${x.execId}`)).size).toBe(1);
  });
});

it.each([["slices of 700 bytes", { kind: "slice", bytes: 700 }], ["latency", { kind: "latency", ms: 100 }], ["little bandwidth", { kind: "bandwidth", bytesPerSecond: 400_000 }]] as const)(
  "%s need no second delivery",
  async (_name, link) => {
    const { proxy, outcome, go } = await world({ keepaliveMs: 5_000 });
    proxy.set(link);
    go();
    const r = await outcome;
    expectWhole(r);
    expect(r.deliveries).toBe(1);
  },
);

it("an abort while the link is down asks again after it is up, so that the kill is confirmed", async () => {
  let call: ExecCall | undefined;
  const relay = await new ScriptedRelay({
    describe: () => ({}),
    exec: (x, c) => void (call = c).write(accepted(x)),
    abort: (a) => call && reply(call, end({ reqId: a.reqId } as Exec, -1, { kill: { found: 1, killed: 1, remaining: 0, verified: true, detail: "" } })),
  }).start();
  const proxy = await new TcpProxy(relay).start();
  const transport = new GrpcRelayTransport({ addr: proxy.addr, sandboxId: "s", graceMs: 8_000 });
  open.push({ close: () => relay.kill() }, { close: () => proxy.stop() }, transport);
  const stop = new AbortController();
  const outcome = transport.exec("c", { signal: stop.signal }).catch((e: unknown) => e);
  await until("it runs", () => call !== undefined);
  await until("the transport knows", () => proxy.accepted === 1);
  await new Promise((r) => setTimeout(r, 100));
  proxy.cut();
  stop.abort();
  await new Promise((r) => setTimeout(r, 300));
  proxy.heal();
  expect(await outcome).toMatchObject({ code: "aborted", kill: { verified: true } });
  expect(relay.execs).toHaveLength(2);
});
