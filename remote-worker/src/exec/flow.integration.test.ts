import { readFileSync } from "node:fs";
import { afterEach, expect, it } from "vitest";
import { until } from "@dialout/common/testkit";
import { startRelay, startWorkerProcess, stopAll, type Answer } from "../testkit";

afterEach(stopAll);

const rss = (pid: number) => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;

it("sends exactly the window, then waits for credit; a stalled flood costs little memory and holds up nobody", async () => {
  const relay = await startRelay(1);
  const worker = startWorkerProcess(relay);
  const peer = await relay.attached();
  await peer.exec({ command: "true" }).done();
  const before = rss(worker.process.pid);
  const window = 256 << 10;
  const floods = [0, 1].map(() => peer.exec({ command: "yes 0123456789abcdef | head -c 1073741824; exit 4", window: BigInt(window) }) as Answer & { reqId: bigint });
  await until("the windows are used up", () => floods.every((f) => f.bytes === window));
  for (let i = 0; i < 20; i++) expect((await peer.exec({ command: "echo ok" }).done()).out).toBe("ok\n");
  expect(floods.map((f) => f.bytes)).toEqual([window, window]);
  expect(rss(worker.process.pid) - before).toBeLessThan(32 << 20);
  peer.send({ $case: "credit", value: { reqId: floods[0]!.reqId, bytes: 1000n } });
  await until("the credit is used up", () => floods[0]!.bytes === window + 1000);
  // An abort does not wait for a reader that takes nothing.
  for (const f of floods) peer.abort(f.reqId);
  for (const f of floods) expect((await f.done()).end).toMatchObject({ exitCode: -1, stdoutTruncated: true, kill: { verified: true } });
});

it("a command whose reader takes all gets all, far beyond spool and ring", async () => {
  const relay = await startRelay(1);
  startWorkerProcess(relay);
  const peer = await relay.attached();
  const a = peer.exec({ command: "head -c 41943040 /dev/zero; exit 2", window: 65_536n }) as Answer & { reqId: bigint };
  let granted = 65_536;
  await until("the end", () => {
    if (granted - a.bytes < 65_536) {
      peer.send({ $case: "credit", value: { reqId: a.reqId, bytes: 1_048_576n } });
      granted += 1_048_576;
    }
    return a.terminals > 0;
  }, 90_000);
  expect([a.bytes, a.end?.exitCode, a.end?.stdoutBytes]).toEqual([40 << 20, 2, BigInt(40 << 20)]);
});
