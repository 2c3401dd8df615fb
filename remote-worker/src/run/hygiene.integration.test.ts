import { chmodSync, chownSync, copyFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { repoRoot, run } from "@dialout/common/testkit";
import { startRelay, startWorkerProcess, stopAll, tempDir } from "../testkit";

afterEach(stopAll);

const asRoot = process.getuid?.() === 0;

describe.runIf(asRoot).each([
  ["root in a pid namespace", { SANDBOX_ISOLATION: "pidns" }],
  ["uid 1001 in a pid namespace", { SANDBOX_ISOLATION: "pidns", SANDBOX_EXEC_USER: "1001" }],
  ["uid 1001 beside the worker", { SANDBOX_ISOLATION: "user", SANDBOX_EXEC_USER: "1001" }],
] as [string, Record<string, string>][])("a command as %s", (_, env) => {
  it.each(["variable", "file"])("finds the token nowhere (given by %s)", async (how) => {
    const secret = `tok${process.pid}sekrit`;
    const dir = tempDir("worker-hygiene-");
    chmodSync(dir, 0o755);
    const file = path.join(dir, "token");
    if (how === "file") writeFileSync(file, `${secret}\n`, { mode: 0o600 });
    const relay = await startRelay();
    const { stateDir } = startWorkerProcess(relay, { SANDBOX_CWD: "/tmp", ...env, ...(how === "file" ? { SANDBOX_TOKEN: "", SANDBOX_TOKEN_FILE: file } : { SANDBOX_TOKEN: secret }) });
    const peer = await relay.attached();
    expect(peer.token).toBe(`Bearer ${secret}`);
    // A pattern that does not match itself, so that the search does not find its own arguments.
    const a = await peer.exec({
      command: `s='[t]ok${process.pid}sekrit'
        env | grep -a "$s"; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -a "$s"
        cat ${file} 2>/dev/null | grep -a "$s"; grep -ra "$s" ${stateDir} 2>/dev/null
        for p in /proc/[0-9]*; do cat $p/root${file} 2>/dev/null | grep -a "$s"; done
        umount ${file} 2>/dev/null && cat ${file}; unshare -m true 2>/dev/null && echo can-mount
        for p in $(pgrep -f '[r]emote-worker/dist'); do head -c 1 /proc/$p/maps >/dev/null 2>&1 && echo "can look into $p"; done
        echo searched`,
    }).done(60_000);
    expect(a.out).toBe("searched\n");
  });
});

it.runIf(asRoot)("a root command in a cell has a container's capabilities, not the host's", async () => {
  const relay = await startRelay();
  startWorkerProcess(relay, { SANDBOX_ISOLATION: "pidns" });
  const peer = await relay.attached();
  const a = await peer.exec({ command: "id -u; grep CapEff /proc/self/status; ls /proc | grep -c '^[0-9]'; touch /root/.dialout-try && rm /root/.dialout-try && echo writes" }).done();
  const [uid, caps, processes, writes] = a.out.split("\n");
  expect([uid, writes]).toEqual(["0", "writes"]);
  expect((BigInt(`0x${caps?.split(/\s+/)[1]}`) >> 21n) & 1n).toBe(0n); // CAP_SYS_ADMIN
  expect(Number(processes)).toBeLessThan(8);
});

it.runIf(asRoot)("a worker without root keeps its token from commands where user namespaces can be had, and says so where not", async () => {
  const relay = await startRelay();
  startWorkerProcess(relay); // builds the bundle
  await relay.attached();
  const state = tempDir("worker-plain-");
  chownSync(state, 65534, 65534);
  // The checkout may lie where only root can read.
  const bundle = path.join(state, "main.cjs");
  copyFileSync(path.join(repoRoot(), "remote-worker/dist/main.cjs"), bundle);
  const worker = run("setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups", process.execPath, bundle], {
    env: { RELAY_ADDR: `127.0.0.1:${relay.port}`, SANDBOX_TOKEN: "s3kr1t", WORKER_STATE_DIR: state }, cwd: "/tmp",
  });
  try {
    const peer = await relay.attached(2);
    const a = await peer.exec({ command: `cat /proc/*/environ | tr '\\0' '\\n' | grep -c '[s]3kr1t'; umount ${state} 2>/dev/null && echo unmounted; unshare -Um umount ${state} 2>/dev/null && echo unmounted; echo $(($(ls /proc | grep -c '^[0-9]') < 9)); exit 3` }).done();
    const isolated = worker.lines.some((l) => l.includes('"isolation":"pidns"'));
    expect([a.out, a.end?.exitCode]).toEqual([isolated ? "0\n1\n" : "1\n0\n", 3]);
    expect(worker.lines.some((l) => l.includes("can read its token"))).toBe(!isolated);
  } finally {
    await worker.stop();
  }
});
