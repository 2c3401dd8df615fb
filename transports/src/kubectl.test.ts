import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "@dialout/common/testkit";
import type { TransportError } from "./errors";
import { KubectlTransport, type KubectlTransportOptions } from "./kubectl";
import { parseKill, parseStatus, Splitter } from "./kubectl-frames";
import { wrapperScript } from "./kubectl-script";
import { settled } from "./testkit/settled";
import { FakeKubectl } from "./testkit/fake-kubectl";

let kubectl: FakeKubectl;
let dir: string;
const transports: KubectlTransport[] = [];

beforeEach(() => {
  kubectl = new FakeKubectl();
  dir = mkdtempSync(path.join(tmpdir(), "kubectl-test-"));
});
afterEach(async () => {
  for (const t of transports.splice(0)) await t.close();
  kubectl.remove();
  rmSync(dir, { recursive: true, force: true });
});

const make = (options: Partial<KubectlTransportOptions> = {}) => {
  const t = new KubectlTransport({ kubectl: kubectl.path, namespace: "default", pod: "pod-a", slackMs: 300, floodMs: 200, abortWaitMs: 5_000, ...options });
  transports.push(t);
  return t;
};
const rejection = (p: Promise<unknown>): Promise<TransportError> => p.then(() => expect.fail("it resolved"), (e: unknown) => e as TransportError);
const gone = (pid: number) => {
  try {
    return /^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return true;
  }
};
const pidIn = (file: string) => until(`a pid in ${file}`, () => { try { return Number(readFileSync(path.join(dir, file), "utf8")) || undefined; } catch { return undefined; } });

it("calls kubectl as the contract says", async () => {
  await make({ context: "kind-x", kubeconfig: "/k", container: "main" }).exec("true");
  await make().exec("true");
  const [full, plain] = kubectl.calls() as [string[], string[]];
  expect(full.slice(0, -1)).toEqual(["exec", "-i", "-n", "default", "--kubeconfig", "/k", "--context", "kind-x", "-c", "main", "pod-a", "--", "bash", "-c"]);
  expect(plain.slice(0, -1)).toEqual(["exec", "-i", "-n", "default", "pod-a", "--", "bash", "-c"]);
});

it("keeps kubectl's own words out of the command's streams", async () => {
  const r = await make().exec("printf out; printf err >&2; exit 9");
  expect(r).toMatchObject({ exitCode: 9, truncated: false });
  expect([r.stdout.toString(), r.stderr.toString()]).toEqual(["out", "err"]);
});

it("returns at once when a background process keeps the streams open", async () => {
  const before = Date.now();
  const r = await make().exec(`sleep 30 & echo $! > ${dir}/pid; echo done`);
  expect(r.stdout.toString()).toBe("done\n");
  expect(Date.now() - before).toBeLessThan(1_500);
  process.kill(await pidIn("pid"));
});

describe("kubectl's own failure is not a failing command", () => {
  it.each([
    ["pod-gone", "not_found", /pods "pod-gone" not found.*kubectl -n default get pods/],
    ["pod-forbidden", "unauthenticated", /auth can-i create pods\/exec/],
    ["pod-nobash", "spawn", /^start bash:/],
    ["pod-nocluster", "unavailable", /kubectl cluster-info/],
  ])("%s is %s", async (pod, code, message) => {
    const e = await rejection(make({ pod }).exec("true"));
    expect(e).toMatchObject({ name: "TransportError", code });
    expect(e.message).toMatch(message);
  });

  it("a missing kubectl is node's own spawn error", async () => {
    await expect(make({ kubectl: "/nonexistent/kubectl" }).exec("true")).rejects.toMatchObject({ code: "ENOENT", syscall: "spawn /nonexistent/kubectl" });
  });

  it("a command that fails like kubectl does is still a command", async () => {
    const r = await make().exec('echo "Error from server (NotFound): pods \\"x\\" not found" >&2; exit 1');
    expect(r.exitCode).toBe(1);
  });

  it("a connection lost while the command runs is disconnected, and the command is killed", async () => {
    const outcome = rejection(make().exec(`echo $$ > ${dir}/pid; echo go; exec sleep 100`));
    const pid = await pidIn("pid");
    process.kill(-(kubectl.pids()[0] as number), "SIGKILL");
    expect(await outcome).toMatchObject({ code: "disconnected", retryable: true, kill: { found: 1, killed: 1, verified: true } });
    expect(gone(pid)).toBe(true);
  });

  it.each(["-n", "a b", "A", "../x"])("refuses %j as a pod", (pod) => {
    expect(() => make({ pod })).toThrow(/^pod .* must be a Kubernetes name/);
  });

  it("refuses a command that no argument can hold", async () => {
    expect(await rejection(make().exec("x".repeat(140_000)))).toMatchObject({ code: "invalid" });
  });
});

describe("a killed command is gone in the pod", () => {
  const escapees = (d: string) => `
    trap '' TERM HUP INT
    tick() { while :; do echo x >> ${d}/$1; sleep 0.02; done; }
    export -f tick
    tick grandchild & setsid bash -c 'tick session' & (setsid nohup bash -c 'tick double' >/dev/null 2>&1 &) ; env -i PATH="$PATH" bash -c 'trap "" TERM; while :; do echo x >> ${d}/noenv; sleep 0.02; done' &
    echo started; wait`;
  const files = ["grandchild", "session", "double", "noenv"];
  const sizes = () => files.map((f) => statSync(path.join(dir, f), { throwIfNoEntry: false })?.size ?? 0);
  const allTick = () => until("all of them tick", () => sizes().every((n) => n > 0));
  const expectStill = async () => {
    const before = sizes();
    await new Promise((r) => setTimeout(r, 400));
    expect(sizes()).toEqual(before);
  };

  it("by abort, whatever it did to escape", async () => {
    const stop = new AbortController();
    const outcome = rejection(make().exec(escapees(dir), { signal: stop.signal }));
    await allTick();
    stop.abort();
    const e = await outcome;
    expect(e).toMatchObject({ code: "aborted", message: "aborted", kill: { remaining: 0, verified: true, detail: "" } });
    expect(e.kill?.found).toBeGreaterThanOrEqual(5);
    await expectStill();
  });

  it("by the time limit, which the pod keeps and reports itself", async () => {
    const before = Date.now();
    const e = await rejection(make({ slackMs: 60_000 }).exec(escapees(dir), { timeout: 1 }));
    expect(Date.now() - before).toBeLessThan(5_000);
    expect(e).toMatchObject({ code: "timeout", message: "timeout:1", kill: { remaining: 0, verified: true } });
    await expectStill();
  });

  it("by the time limit when the caller is dead (kubernetes/kubernetes#89031, kubernetes/kubectl#1076)", async () => {
    const script = wrapperScript({ command: escapees(dir), mark: `mark-${path.basename(dir)}`, nonce: "n", timeoutS: 1 });
    const caller = spawn("bash", ["-c", `cat | setsid -w bash -c '${script.replaceAll("'", "'\\''")}' | cat`], { stdio: "ignore", detached: true });
    await allTick();
    process.kill(-(caller.pid as number), "SIGKILL");
    await until("nothing is left", () => execFileSync("bash", ["-c", `grep -lzx DIALOUT_EXEC_MARK=mark-${path.basename(dir)} /proc/[0-9]*/environ 2>/dev/null || true`]).toString() === "", 8_000);
    await expectStill();
  });

  it("our own timer works when kubectl hangs; then nothing is verified", async () => {
    kubectl.slow(30);
    const e = await rejection(make({ abortWaitMs: 500 }).exec("true", { timeout: 0.2 }));
    expect(e).toMatchObject({ code: "timeout", message: "timeout:0.2", kill: { verified: false } });
  });

  it("waits for a command that was aborted before it began, and kills it then", async () => {
    kubectl.slow(0.5);
    const e = await rejection(make().exec(`echo x > ${dir}/ran; sleep 100`, { signal: AbortSignal.timeout(50) }));
    expect(e).toMatchObject({ code: "aborted", kill: { verified: true, remaining: 0 } });
    expect(e.kill?.found).toBeGreaterThan(0);
  });

  it("an already aborted signal starts nothing", async () => {
    expect(await rejection(make().exec("true", { signal: AbortSignal.abort() }))).toMatchObject({ code: "aborted", deliveries: 0 });
    expect(kubectl.pids()).toEqual([]);
  });

  it("close kills what runs", async () => {
    const t = make();
    const outcome = rejection(t.exec(`echo $$ > ${dir}/pid; exec sleep 100`));
    const pid = await pidIn("pid");
    await t.close();
    expect(await outcome).toMatchObject({ code: "closed", kill: { verified: true } });
    expect(gone(pid)).toBe(true);
  });
});

it("a stalled listener holds the command back", async () => {
  let release: () => void = () => undefined;
  const stalled = new Promise<void>((resolve) => (release = resolve));
  const outcome = make().exec(`for i in {1..400}; do head -c 32768 /dev/zero; echo $i > ${dir}/n; done`, { outputCap: 64 << 20, onData: () => stalled });
  await pidIn("n");
  const written = () => Number(readFileSync(`${dir}/n`, "utf8"));
  await settled(written);
  expect(written()).toBeLessThan(200);
  release();
  expect((await outcome).stdout.length).toBe(400 * 32768);
});

describe("frames", () => {
  it("a mark is found however it is split, and everything else passes through", () => {
    const text = Buffer.from("ab\x01E\x01Enonce rest");
    for (let size = 1; size <= text.length; size++) {
      let before = "";
      let after = "";
      const s = new Splitter(Buffer.from("\x01Enonce "), (d) => (before += d), (d) => (after += d));
      for (let i = 0; i < text.length; i += size) s.push(text.subarray(i, i + size));
      expect([before, after]).toEqual(["ab\x01E", "rest"]);
    }
  });

  it("what only looked like a mark comes out at the end", () => {
    let before = "";
    const s = new Splitter(Buffer.from("\x01Enonce"), (d) => (before += d), () => undefined);
    s.push(Buffer.from("x\x01Eno"));
    expect(before).toBe("x");
    s.flush();
    expect(before).toBe("x\x01Eno");
  });

  it.each([
    ["7 \n", { exitCode: 7, late: undefined }],
    ["137 3 3 0 0\n", { exitCode: 137, late: { found: 3, killed: 3, remaining: 0, verified: true, detail: "" } }],
    ["7 ", undefined],
    ["x \n", undefined],
  ])("status %j", (text, parsed) => {
    expect(parseStatus(text)).toEqual(parsed);
  });

  it("says why a kill is not verified", () => {
    expect(parseKill("3 1 2 1")).toMatchObject({ verified: false, detail: "unverified: 2 processes are still there; 1 processes of another user could not be inspected" });
  });
});
