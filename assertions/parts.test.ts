// The small parts around the proof.
import { SettingError } from "@dialout/common";
import { describe, expect, it } from "vitest";
import { until, within } from "./bounds";
import { armState, loadKubeConfig, targetPort } from "./cluster";
import { describe as tell, fine, Ledger, Stop, wrong } from "./evidence";
import { testInput } from "./fakes";
import { parseInput } from "./input";
import { exitCode } from "./kube-sockets";
import { newMarker } from "./marker";
import { readProbe } from "./model";
import { changed, digest } from "./run";

describe("Ledger", () => {
  const plan = ["one", "two", "three"].map((check) => ({ check, next: `do ${check}` }));

  it("keeps the order of the plan and reports what was not run", async () => {
    const ledger = new Ledger(plan);
    await ledger.check("two", "2", () => fine("2"));
    await expect(ledger.must("one", "1", () => wrong("0", "too small"))).rejects.toThrow(Stop);
    const o = ledger.close([]);
    expect(o.evidence).toEqual([
      { check: "one", expected: "1", seen: "0 (too small)", ok: false },
      { check: "two", expected: "2", seen: "2", ok: true },
      { check: "three", expected: "to be checked", seen: "not run: 'one' failed before it", ok: false },
    ]);
    expect(o.message).toBe("check 'one' failed: expected 1; seen: 0 (too small). (1 later checks were not run) Next: do one");
    expect(o.passed).toBe(false);
  });

  it("is not passed when nothing was checked", () => {
    expect(new Ledger(plan).close([]).passed).toBe(false);
  });

  it("takes an error for what was seen", async () => {
    const ledger = new Ledger(plan);
    await ledger.check("one", "x", () => Promise.reject(new Error("fetch failed", { cause: new Error("ECONNREFUSED") })));
    expect(ledger.entries[0]!.seen).toBe("no answer (fetch failed: ECONNREFUSED)");
  });

  it("refuses unplanned checks and second entries", async () => {
    const ledger = new Ledger(plan);
    await ledger.check("one", "x", () => fine(""));
    await expect(ledger.check("one", "x", () => fine(""))).rejects.toThrow(/twice/);
    await expect(ledger.check("four", "x", () => fine(""))).rejects.toThrow(/not a planned/);
  });

  it("keeps secrets, control characters and endless text out of outcome and verdicts", async () => {
    const ledger = new Ledger(plan, (t) => t.replaceAll("hunter2", "[redacted]"));
    await ledger.check("one", "hunter2", () => wrong(`\u001b[31m hunter2\n${"x".repeat(5000)}`));
    const row = { arm: "pods", pattern: "p", expected: "CLEAR", verdict: "CLEAR", reason: "says hunter2", sandbox: "none", elapsedMs: 1 };
    const text = JSON.stringify(ledger.close([row]));
    expect(text).not.toContain("hunter2");
    expect(text).not.toContain("\\u001b");
    expect(text.length).toBeLessThan(4000);
  });
});

it.each([[new Error("a", { cause: new Error("b") }), "a: b"], [new AggregateError([new Error("ECONNREFUSED")]), "AggregateError: ECONNREFUSED"], ["text", "text"], [new Error("a: b", { cause: new Error("b") }), "a: b"]])("describes %s", (e, text) => {
  expect(tell(e)).toBe(text);
});

describe("parseInput", () => {
  it("fills in what has a default", () => {
    expect(testInput()).toMatchObject({ namespace: "default", domain: "example.com", relay: { service: "sandbox-relay", execPort: 8444, secret: "sh-relay-token" } });
  });
  it.each<[string, Record<string, unknown>, RegExp]>([
    ["an empty kubeconfig", { kubeconfig: "" }, /kubeconfig: is empty/],
    ["a selector that says nothing", { remoteSelector: "" }, /remoteSelector: must be KEY=VALUE/],
    ["a set-based selector", { remoteSelector: "pool in (a,b)" }, /remoteSelector/],
    ["a port out of range", { redis: { service: "redis", port: 0 } }, /redis.port/],
    ["an id with a space", { worker: { container: "c", id: "a b" } }, /worker.id: must be 1 to 63/],
    ["a missing arm", { arms: { pods: "a", remote: "b" } }, /arms.miswired/],
  ])("refuses %s by name", (_what, change, why) => {
    expect(() => testInput(change)).toThrow(SettingError);
    expect(() => testInput(change)).toThrow(why);
  });
  it("never shows a value: it may be the kubeconfig", () => {
    expect(() => parseInput({ kubeconfig: 7, arms: "hunter2" })).toThrow(/^(?!.*hunter2)/);
  });
});

describe("the outcome's digest", () => {
  it("does not depend on the order of keys, on missing values, or on what the engine adds", () => {
    expect(digest({ a: 1, b: { c: [1, 2], d: undefined }, __provider: "x" })).toBe(digest({ b: { c: [1, 2] }, a: 1 }));
  });
  it.each([[{ a: 2 }], [{ a: 1, b: 1 }], [{}], [{ a: [1] }], [{ a: "1" }]])("differs for %j", (other) => {
    expect(digest(other)).not.toBe(digest({ a: 1 }));
  });
  it("calls for another run when inputs changed or the last one did not pass", () => {
    const inputs = digest({ a: 1 });
    expect(changed({ passed: true, inputs }, { a: 1 })).toBe(false);
    expect(changed({ passed: true, inputs }, { a: 2 })).toBe(true);
    expect(changed({ passed: false, inputs }, { a: 1 })).toBe(true);
    expect(changed({}, { a: 1 })).toBe(true);
  });
});

describe("the cluster's answers", () => {
  const service = (ports: unknown[]) => ({ metadata: { name: "s" }, spec: { ports } }) as never;
  it("finds the pod's port behind a Service's", () => {
    expect(targetPort(service([{ port: 80, targetPort: 8080 }]), 80, {})).toBe(8080);
    expect(targetPort(service([{ port: 80, targetPort: "http" }]), 80, { http: 8012 })).toBe(8012);
    expect(targetPort(service([{ port: 80 }]), 80, {})).toBe(80);
    expect(() => targetPort(service([{ port: 80 }]), 81, {})).toThrow(/no port 81; it has 80/);
    expect(() => targetPort(service([{ port: 80, targetPort: "http" }]), 80, {})).toThrow(/no port named http/);
  });
  it("reads an arm without its secrets, and one that is not there yet", () => {
    const env = [{ name: "A", value: "1" }, { name: "S", valueFrom: { secretKeyRef: {} } }, { name: "E", value: "" }];
    const status = { conditions: [{ type: "Ready", status: "True" }], latestCreatedRevisionName: "r2", latestReadyRevisionName: "r1" };
    expect(armState({ spec: { template: { spec: { containers: [{ env }] } } }, status })).toEqual({ env: { A: "1", E: "" }, ready: true, latestCreated: "r2", latestReady: "r1" });
    expect(armState({})).toEqual({ env: {}, ready: false, latestCreated: "", latestReady: "" });
  });
  it("tells a command's exit code from a command that was not run", () => {
    expect(exitCode('{"status":"Success"}', "p")).toBe(0);
    expect(exitCode('{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}', "p")).toBe(7);
    expect(() => exitCode('{"status":"Failure","message":"container not found"}', "p")).toThrow(/container not found/);
    expect(() => exitCode("", "p")).toThrow(/without a status/);
  });
  it("refuses an unusable kubeconfig without showing it", () => {
    expect(() => loadKubeConfig("hunter2: [")).toThrow(/^(?!.*hunter2).*not one/);
    expect(() => loadKubeConfig("apiVersion: v1\nkind: Config\n")).toThrow(SettingError);
    expect(() => loadKubeConfig("apiVersion: v1\nkind: Config\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n", "b")).toThrow(/"b" is not in the kubeconfig; it has: a/);
  });
});

it("reads the model probe's last line and nothing else", () => {
  expect(readProbe('warning\n{"url":"http://m/v1/models","status":200}\n')).toEqual({ url: "http://m/v1/models", status: 200 });
  expect(readProbe('{"url":"http://m","error":"ENOTFOUND"}')).toEqual({ url: "http://m", error: "ENOTFOUND" });
  expect(() => readProbe("")).toThrow();
  expect(() => readProbe('{"status":200}')).toThrow(/something else/);
});

it("makes a marker whose secret half is 16 random bytes that neither path nor tag give away", () => {
  const a = newMarker(), b = newMarker();
  expect(a.secret).toMatch(/^[0-9a-f]{32}$/);
  expect(a.secret).not.toBe(b.secret);
  expect(a.path).not.toBe(b.path);
  expect(a.path + a.tag).not.toContain(a.secret);
  expect(a.line).toBe(`${a.tag} ${a.secret}`);
});

it("bounds what never ends, and asks until it is so", async () => {
  await expect(within(20, "forever", new Promise(() => {}))).rejects.toThrow("forever: no answer within 0.02 s");
  let n = 0;
  await until("three", 5000, async () => ++n === 2);
  await expect(until("never", 10, async () => Promise.reject(new Error("down")))).rejects.toThrow(/never \(down\)/);
});
