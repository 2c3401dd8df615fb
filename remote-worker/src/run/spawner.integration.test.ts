import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { afterEach, expect, it } from "vitest";
import { until } from "@dialout/common/testkit";
import { startRelay, startWorkerProcess, stopAll } from "../testkit";

afterEach(stopAll);

const childrenOf = (pid: number) => readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
const lives = (pid: number) => existsSync(`/proc/${pid}`) && !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));

async function setup() {
  const relay = await startRelay();
  const worker = startWorkerProcess(relay);
  const peer = await relay.attached();
  const [helper] = childrenOf(worker.process.pid) as [number];
  return { relay, worker, peer, helper };
}

it("the helper is the worker's only child, holds no token, and is deaf to signals that are meant for the worker", async () => {
  const { worker, peer, helper } = await setup();
  expect(childrenOf(worker.process.pid)).toEqual([helper]);
  expect(readFileSync(`/proc/${helper}/environ`, "latin1")).not.toContain("test-token");
  expect(readFileSync(`/proc/${helper}/cmdline`, "latin1")).toContain("spawn-helper");
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const) process.kill(helper, signal);
  expect((await peer.exec({ command: "exit 5" }).done()).end?.exitCode).toBe(5);
});

it("without its helper the worker says so and ends; commands die with it and count as interrupted, not as done", async () => {
  const { relay, worker, peer, helper } = await setup();
  const exec = { command: "echo $$; exec sleep 300", execId: randomUUID() };
  const a = peer.exec(exec);
  await until("it runs", () => a.out.includes("\n"));
  const running = childrenOf(helper);
  process.kill(helper, "SIGKILL");
  expect(await worker.process.ended()).toMatchObject({ code: 1 });
  expect(worker.process.output()).toMatch(/helper process .* has ended \(SIGKILL\).*Start the worker again/);
  await until("nothing of it is left", () => !running.some(lives));
  startWorkerProcess(relay, { WORKER_STATE_DIR: worker.stateDir });
  expect((await (await relay.attached(2)).exec({ ...exec, delivery: 2 }).done()).error?.code).toBe("interrupted");
});

it("the helper ends with a worker that was killed, and so do the places that wait", async () => {
  const { worker, helper } = await setup();
  const waiting = childrenOf(helper);
  expect(waiting.length).toBeGreaterThan(0);
  process.kill(worker.process.pid, "SIGKILL");
  await until("all are gone", () => ![helper, ...waiting].some(lives));
});

it("gives a command its input as a file, through /dev/stdin again, and leaves no file behind", async () => {
  const { peer, worker } = await setup();
  const stdin = Buffer.alloc(3 << 20, "0123456789abcdef");
  const a = await peer.exec({ command: "head -c 4; cat /dev/stdin | wc -c; wc -c < /dev/stdin", stdin }).done();
  expect(a.out).toMatch(/^0123\d+\n3145728\n$/);
  const files = readdirSync(`${worker.stateDir}/pipes`, { withFileTypes: true }).filter((f) => !f.isFIFO());
  expect(files.map((f) => f.name)).toEqual([]);
});
