import { Metadata, status } from "@grpc/grpc-js";
import { writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startProgram, until } from "@dialout/common/testkit";
import { ScriptedRelay, startRelay, startWorkerProcess, stopAll, tempDir, type Peer } from "../testkit";

afterEach(stopAll);

const refuse = (code: status, details: string) => (peer: Peer) => {
  peer.wire.emit("error", { code, details, metadata: new Metadata() });
  return true;
};

describe("refused", () => {
  it("a wrong token is named with what to do, and tried again with growing pauses", async () => {
    const relay = await startRelay();
    relay.onHello = refuse(status.UNAUTHENTICATED, "bad token");
    const { process: p } = startWorkerProcess(relay);
    const line = await p.line(/refuses the token/);
    expect(line).toContain("SANDBOX_TOKEN");
    await until("a second try", () => relay.peers.length >= 2);
    expect(p.output()).not.toContain("attached, serving execs");
    relay.onHello = () => false;
    await p.line(/attached, serving execs/);
    expect(p.output()).not.toContain("test-token");
  });

  it("an OK right after Hello is a refusal of a base relay, not an attachment", async () => {
    const relay = await startRelay(0);
    relay.onHello = (peer) => (peer.wire.end(), true);
    const { process: p } = startWorkerProcess(relay);
    await p.line(/closed the stream right after the introduction/);
    expect(p.output()).not.toContain("attached, serving execs");
  });

  it("superseded ends the worker with 1 and the reason", async () => {
    const relay = await startRelay();
    const { process: p } = startWorkerProcess(relay);
    const peer = await relay.attached();
    await p.line(/attached, serving execs/);
    refuse(status.ABORTED, "superseded by a newer session")(peer);
    await p.line(/SANDBOX_ID/);
    expect((await p.ended()).code).toBe(1);
  });
});

it("comes back after the relay was away, on the same port", async () => {
  const first = await startRelay();
  const { process: p } = startWorkerProcess(first);
  await first.attached();
  first.stop();
  await p.line(/retry_ms/);
  const second = await new ScriptedRelay(1).listen(first.port);
  await second.attached();
  second.stop();
});

it("a worker whose caller may be waiting dials again soon, however often the link was lost before", async () => {
  const relay = await startRelay();
  const { process: p } = startWorkerProcess(relay);
  const peer = await relay.attached();
  peer.exec({ command: "sleep 60", execId: "e1" });
  await until("the command is accepted", () => peer.frames.some((f) => f.msg?.$case === "accepted"));
  relay.onHello = refuse(status.UNAVAILABLE, "not now");
  peer.cut();
  const pauses = () => p.lines.flatMap((l) => /"retry_ms":(\d+)/.exec(l)?.[1] ?? []).map(Number);
  await until("six losses", () => pauses().length >= 6, 60_000);
  // Without somebody waiting the sixth pause is 16 s at least.
  expect(Math.max(...pauses())).toBeLessThanOrEqual(7_500);
}, 90_000);

it("beats as Welcome says, and leaves a relay that has gone silent", async () => {
  const relay = await startRelay(1, { heartbeatMs: 100, deadlineMs: 800 });
  const { process: p } = startWorkerProcess(relay);
  const peer = await relay.attached();
  await until("heartbeats", () => peer.heartbeats >= 3);
  await p.line(/the relay has gone silent: no frame from the relay for 800 ms/);
  expect((await relay.attached(2)).hello?.instanceId).toBe(peer.hello?.instanceId);
});

it("reads the token file anew for each attach", async () => {
  const relay = await startRelay();
  const file = path.join(tempDir("worker-token-"), "token");
  writeFileSync(file, "one\n", { mode: 0o600 });
  startWorkerProcess(relay, { SANDBOX_TOKEN: "", SANDBOX_TOKEN_FILE: file });
  const peer = await relay.attached();
  writeFileSync(file, "two\n");
  peer.cut();
  expect([peer.token, (await relay.attached(2)).token]).toEqual(["Bearer one", "Bearer two"]);
});

describe("shutdown", () => {
  it("SIGTERM lets a running command end, takes no new one, and exits 0", async () => {
    const relay = await startRelay();
    const { process: p } = startWorkerProcess(relay);
    const peer = await relay.attached();
    const running = peer.exec({ command: "echo up; sleep 1.5; echo done" });
    await until("up", () => running.out === "up\n");
    p.signal("SIGTERM");
    await p.line(/shutting down/);
    expect((await peer.exec({ command: "true" }).done()).error).toMatchObject({ code: "busy", message: expect.stringMatching(/^busy/) });
    expect([(await running.done()).out, running.end?.exitCode]).toEqual(["up\ndone\n", 0]);
    expect((await p.ended()).code).toBe(0);
  });

  it("kills what does not end within WORKER_DRAIN_MS and still answers for it", async () => {
    const relay = await startRelay();
    const { process: p } = startWorkerProcess(relay, { WORKER_DRAIN_MS: "300" });
    const peer = await relay.attached();
    const running = peer.exec({ command: "echo up; sleep 3000" });
    await until("up", () => running.out === "up\n");
    p.signal("SIGTERM");
    expect((await running.done()).end).toMatchObject({ exitCode: -1, kill: { verified: true } });
    expect((await p.ended()).code).toBe(0);
  });

  it("a second signal leaves at once and leaves no process behind", async () => {
    const relay = await startRelay();
    const { process: p } = startWorkerProcess(relay, { WORKER_DRAIN_MS: "60000", SANDBOX_ISOLATION: "none" });
    const peer = await relay.attached();
    const running = peer.exec({ command: "echo $$; sleep 3000" });
    await until("up", () => running.out.endsWith("\n"));
    p.signal("SIGTERM");
    await p.line(/shutting down/);
    p.signal("SIGTERM");
    expect((await p.ended()).code).toBe(130);
    await until("the command is gone", () => {
      try {
        process.kill(Number(running.out), 0);
        return false;
      } catch {
        return true;
      }
    });
  });
});

describe("settings at start", () => {
  it.each([
    [{ SANDBOX_TOKEN: "" }, "SANDBOX_TOKEN"],
    [{ RELAY_ADDR: "nonsense" }, "RELAY_ADDR"],
    [{ WORKER_MAX_CONCURRENT: "many" }, "WORKER_MAX_CONCURRENT"],
    [{ WORKER_STATE_DIR: "/proc/nope" }, "WORKER_STATE_DIR"],
  ])("%j exits 3 with one line that names it", async (env, name) => {
    const p = startProgram("remote-worker", { SANDBOX_TOKEN: "t", ...env });
    expect((await p.ended()).code).toBe(3);
    expect(p.lines.filter((l) => l !== "")).toEqual([expect.stringMatching(new RegExp(`^error: ${name}`))]);
  });

  it("a state folder in use is refused by name", async () => {
    const relay = await startRelay();
    const { stateDir } = startWorkerProcess(relay);
    await relay.attached();
    const p = startProgram("remote-worker", { SANDBOX_TOKEN: "t", WORKER_STATE_DIR: stateDir });
    expect((await p.ended()).code).toBe(3);
    expect(p.output()).toMatch(/^error: WORKER_STATE_DIR=.* in use by another worker/m);
  });
});

it("serves its numbers when asked to", async () => {
  const relay = await startRelay();
  const { process: p } = startWorkerProcess(relay, { WORKER_METRICS_PORT: "0" });
  const peer = await relay.attached();
  await peer.exec({ command: "echo four" }).done();
  const { port } = (JSON.parse(await p.line(/metrics served/)) as { address: { port: number } }).address;
  const text = await new Promise<string>((resolve, reject) => http.get({ port, host: "127.0.0.1", path: "/metrics" }, (r) => {
    let t = "";
    r.on("data", (d: Buffer) => (t += d.toString())).on("end", () => resolve(t));
  }).on("error", reject));
  expect(text).toMatch(/dialout_worker_attached 1\n/);
  expect(text).toMatch(/dialout_worker_output_bytes_total{stream="stdout"} 5\n/);
});
