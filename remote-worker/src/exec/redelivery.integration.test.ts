import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, truncateSync, statSync, existsSync } from "node:fs";
import path from "node:path";
import { afterEach, expect, it } from "vitest";
import { until } from "@dialout/common/testkit";
import { startRelay, startWorkerProcess, stopAll, tempDir, type Peer } from "../testkit";

afterEach(stopAll);

const read = (file: string) => (existsSync(file) ? readFileSync(file, "utf8") : "");
const setup = async (protocol: 0 | 1 = 1, env: Record<string, string> = {}) => {
  const relay = await startRelay(protocol);
  const worker = startWorkerProcess(relay, env);
  const peer = await relay.attached();
  const file = path.join(tempDir("worker-once-"), "runs");
  return { relay, worker, peer, file };
};

it("a finished command is replayed with its output, also after the worker restarted, and never run twice", async () => {
  const { relay, worker, peer, file } = await setup();
  const exec = { command: `echo run >> ${file}; echo out; echo err >&2; exit 7`, execId: randomUUID(), reqId: 11n, delivery: 1 };
  await peer.exec(exec).done();
  const again = await peer.exec({ ...exec, delivery: 2 }).done();
  expect([again.out, again.err, again.end?.exitCode, again.end?.replayed]).toEqual(["out\n", "err\n", 7, true]);
  const rest = await peer.exec({ ...exec, delivery: 3, resumeStdout: 2n, resumeStderr: 4n }).done();
  expect([rest.out, rest.err]).toEqual(["t\n", ""]);
  await worker.process.stop("SIGKILL");
  startWorkerProcess(relay, { WORKER_STATE_DIR: worker.stateDir });
  const next = await relay.attached(2);
  expect(next.hello?.journalId).toBe(peer.hello?.journalId);
  expect(next.hello?.instanceId).not.toBe(peer.hello?.instanceId);
  const late = await next.exec({ ...exec, delivery: 4 }).done();
  expect([late.out, late.end?.exitCode, late.end?.replayed]).toEqual(["out\n", 7, true]);
  expect(read(file)).toBe("run\n");
});

it("large output is replayed from disk, byte for byte", async () => {
  const { peer } = await setup();
  const exec = { command: "seq 1 900000", execId: randomUUID() };
  const first = await peer.exec(exec).done(60_000);
  const again = await peer.exec(exec).done(60_000);
  expect(first.bytes).toBeGreaterThan(6_000_000);
  expect(again.out === first.out).toBe(true);
});

it.each([0, 1] as const)("over a protocol %i relay a link cut in mid-run is joined: output continues, one run, same status", async (protocol) => {
  const { relay, peer, file } = await setup(protocol);
  const exec = { command: `echo run >> ${file}; echo one; until [ -e ${file}.go ]; do sleep 0.05; done; echo two; exit 3`, execId: protocol ? randomUUID() : "", reqId: 21n };
  const first = peer.exec(exec);
  await until("first output", () => first.out === "one\n");
  peer.cut();
  const next = await relay.attached(2);
  const joined = next.exec({ ...exec, resumeStdout: 4n });
  execFileSync("touch", [`${file}.go`]);
  await joined.done();
  expect([joined.out, joined.end?.exitCode]).toEqual(["two\n", 3]);
  if (protocol) expect(joined.accepted[0]?.state).toBe("joined");
  expect(read(file)).toBe("run\n");
  expect(first.terminals).toBe(0);
});

it("kill -9 of the worker in mid-run: its processes are gone after the restart, and the id answers interrupted", async () => {
  const { relay, worker, peer, file } = await setup(1, { SANDBOX_ISOLATION: "none" });
  const exec = { command: `echo $$ >> ${file}; (setsid sleep 3333 & echo $! >> ${file}); sleep 3333`, execId: randomUUID() };
  peer.exec(exec);
  await until("both run", () => read(file).trim().split("\n").length === 2);
  await worker.process.stop("SIGKILL");
  const second = startWorkerProcess(relay, { WORKER_STATE_DIR: worker.stateDir, SANDBOX_ISOLATION: "none" });
  const next = await relay.attached(2);
  await second.process.line(/interrupted in this command/);
  for (const pid of read(file).trim().split("\n")) expect(existsSync(`/proc/${pid}`) && /^State:\s+[^ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8")), `process ${pid}`).toBe(false);
  const again = await next.exec({ ...exec, delivery: 2 }).done();
  expect(again.error).toMatchObject({ code: "interrupted", message: expect.stringMatching(/^interrupted/) });
  expect(read(file).trim().split("\n")).toHaveLength(2);
});

it("a torn journal is usable: the whole records count, the torn one was never started", async () => {
  const { relay, worker, peer, file } = await setup();
  const ids = [randomUUID(), randomUUID()];
  for (const execId of ids) await peer.exec({ command: `echo ${execId} >> ${file}`, execId }).done();
  await worker.process.stop("SIGKILL");
  const journal = path.join(worker.stateDir, "journal");
  truncateSync(journal, statSync(journal).size - 9);
  startWorkerProcess(relay, { WORKER_STATE_DIR: worker.stateDir });
  const next = await relay.attached(2);
  expect(next.hello?.journalId).toBe(peer.hello?.journalId);
  expect((await next.exec({ command: `echo ${ids[0]} >> ${file}`, execId: ids[0]! }).done()).end?.replayed).toBe(true);
  expect((await next.exec({ command: `echo ${ids[1]} >> ${file}`, execId: ids[1]! }).done()).error?.code).toBe("interrupted");
  expect(read(file)).toBe(ids.map((i) => `${i}\n`).join(""));
});

it("refuses what does not fit: another journal, another command under the id, output no longer held, a bad id", async () => {
  const { peer } = await setup();
  const execId = randomUUID();
  await peer.exec({ command: "echo a", execId }).done();
  const code = async (e: Parameters<typeof peer.exec>[0]) => (await peer.exec(e).done()).error?.code;
  expect(await code({ command: "echo a", execId: randomUUID(), journalId: randomUUID() })).toBe("journal_mismatch");
  expect(await code({ command: "echo b", execId })).toBe("collision");
  expect(await code({ command: "echo a", execId, resumeStdout: 99n })).toBe("output_lost");
  expect(await code({ command: "echo a", execId: "../../etc" })).toBe("invalid");
  expect(await code({ command: "echo a", execId, journalId: peer.hello!.journalId })).toBeUndefined();
});

it("a base caller's id: coalesced by fingerprint, collision while running, afresh afterwards", async () => {
  const { peer, file } = await setup(0);
  const a = peer.exec({ command: `echo a >> ${file}; sleep 1`, reqId: 5n });
  await until("running", () => read(file) === "a\n");
  const clash = await peer.exec({ command: "echo other", reqId: 5n }).done();
  expect(clash.error?.message).toBe("req_id collision: a different command is already in flight for this id");
  const joined = await peer.exec({ command: `echo a >> ${file}; sleep 1`, reqId: 5n }).done();
  expect(joined.end?.exitCode).toBe(0);
  const fresh = await peer.exec({ command: `echo b >> ${file}`, reqId: 5n }).done();
  expect([fresh.end?.exitCode, read(file), a.terminals]).toEqual([0, "a\nb\n", 0]);
});

it("nobody listens: killed after the smaller grace, answered with End{-1} and the reason; within the grace it goes on", async () => {
  const { peer, worker } = await setup(1, { WORKER_GRACE_MS: "60000" });
  const slow = { command: "echo up; sleep 100", execId: randomUUID(), reqId: 31n, graceS: 1 };
  const quick = { command: "sleep 0.5; echo done", execId: randomUUID(), reqId: 32n, graceS: 30 };
  const first = peer.exec(slow);
  peer.exec(quick);
  await until("the slow one runs", () => first.out === "up\n");
  peer.send({ $case: "detach", value: { reqId: 31n } });
  peer.send({ $case: "detach", value: { reqId: 32n } });
  await worker.process.line(new RegExp(`"exec_id":"${slow.execId}".*"msg":"exec ended"`));
  // The relay learns of the end though nobody listens: it holds the exec until then.
  expect((await first.done()).end).toMatchObject({ exitCode: -1, kill: { verified: true } });
  const a = await peer.exec({ ...slow, reqId: 33n, delivery: 2 }).done();
  expect(a.end).toMatchObject({ exitCode: -1, replayed: true, kill: { verified: true, detail: "nobody listened for 1000 ms" } });
  const b = await peer.exec({ ...quick, reqId: 34n, delivery: 2 }).done();
  expect([b.out, b.end?.exitCode]).toEqual(["done\n", 0]);
});

it("a replay that is given up, by its caller or with its session, keeps no file open, and its end is told", async () => {
  const { relay, worker, peer } = await setup();
  const stored = { command: "seq 1 100000", execId: randomUUID(), window: 4_096n };
  await peer.exec({ ...stored, window: 0n }).done();
  const { pid } = worker.process;
  const outputs = () => readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith(path.join(worker.stateDir, "output"));
    } catch {
      return false; // closed while we looked
    }
  }).length;
  await until("the command's own are closed", () => outputs() === 0);
  const stalled = async (on: Peer, reqId: bigint) => {
    const a = on.exec({ ...stored, reqId, delivery: 2 });
    await until("it waits for credit", () => a.bytes === 4_096 && outputs() > 0);
    return a;
  };
  const detached = await stalled(peer, 41n);
  peer.send({ $case: "detach", value: { reqId: 41n } });
  expect((await detached.done()).end).toMatchObject({ exitCode: 0, replayed: true });
  await until("closed after the detach", () => outputs() === 0);
  // Its caller may also come again before the relay has noticed that it was gone.
  await stalled(peer, 43n);
  const again = await peer.exec({ ...stored, window: 0n, reqId: 43n, delivery: 3 }).done();
  expect([again.bytes, again.end?.replayed, again.error]).toEqual([588_895, true, undefined]);
  await until("closed after the takeover", () => outputs() === 0);
  await stalled(peer, 42n);
  peer.cut();
  await relay.attached(2);
  await until("closed after the cut", () => outputs() === 0);
});

it.runIf(process.getuid?.() === 0)("a full disk refuses the command instead of running it unjournalled, and heals", async () => {
  const state = tempDir("worker-small-");
  const disk = path.join(state, "disk");
  mkdirSync(disk);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", disk]);
  try {
    const { peer, file, worker } = await setup(1, { WORKER_STATE_DIR: disk });
    expect((await peer.exec({ command: "echo ok", execId: randomUUID() }).done()).out).toBe("ok\n");
    execFileSync("bash", ["-c", `head -c 1M /dev/zero > ${disk}/filler || :`], { stdio: "ignore" });
    // The journal's last page has room for a few records more.
    let refused;
    let ran = 0;
    for (let i = 0; i < 60 && !refused; i++) {
      const a = await peer.exec({ command: `echo run >> ${file}`, execId: randomUUID() }).done();
      if (a.error) refused = a.error;
      else ran++;
    }
    expect(refused).toMatchObject({ code: "resource_exhausted", message: expect.stringMatching(/ENOSPC.*not started/) });
    expect(read(file)).toBe("run\n".repeat(ran));
    execFileSync("rm", [`${disk}/filler`]);
    expect((await peer.exec({ command: "echo ok", execId: randomUUID() }).done()).out).toBe("ok\n");
    await worker.process.stop();
  } finally {
    execFileSync("umount", ["-l", disk]);
  }
});
