import { describe, expect, it } from "vitest";
import { DEBIAN_12, DEBIAN_13, FakeWorld, MODEL_URL, RED_HAT, TOKEN, testInput, type RunBody } from "./fakes";
import { proofPlan } from "./plan";
import type { World } from "./ports";
import { prove } from "./prove";

const failedChecks = (o: { evidence: { check: string; ok: boolean; seen: string }[] }) =>
  o.evidence.filter((e) => !e.ok && !e.seen.startsWith("not run")).map((e) => e.check);

async function proveIn(change: (f: FakeWorld) => void, input = testInput(), wrap: (w: World, f: FakeWorld) => void = () => {}) {
  const fake = new FakeWorld();
  change(fake);
  const world = fake.world();
  wrap(world, fake);
  return { fake, outcome: await prove(input, world) };
}

describe("a world that is still starting", () => {
  const slow = (w: World, f: FakeWorld) => {
    let healthy = 0, seen = 0, listed = 0;
    const { health } = w.harness, { presence } = w.store, { runningPods } = w.cluster;
    w.harness.health = async (arm) => (++healthy > 4 ? health(arm) : Promise.reject(new Error("no ready pod")));
    w.store.presence = async (id) => (++seen > 2 ? presence(id) : undefined);
    w.cluster.runningPods = async (s) => (s === testInput().poolSelector && ++listed <= 2 ? f.pods.map((pod, i) => ({ ...pod, ready: i > 0 })) : runningPods(s));
  };

  it("is waited for", async () => {
    const { outcome } = await proveIn(() => {}, testInput(), (w, f) => {
      w.patienceMs = 10_000;
      slow(w, f);
    });
    expect(failedChecks(outcome)).toEqual([]);
  });

  it("is not waited for without patience", async () => {
    const { outcome } = await proveIn(() => {}, testInput(), slow);
    expect(failedChecks(outcome)).toEqual(["harness-answers"]);
  });

  it("has one try per leaf all the same", async () => {
    const { outcome, fake } = await proveIn(() => {}, testInput(), (w) => {
      w.patienceMs = 10_000;
      const { run } = w.harness;
      let n = 0;
      w.harness.run = async (arm, body) => (n++ === 0 ? { status: 503, body: "", elapsedMs: 1 } : run(arm, body));
    });
    expect(failedChecks(outcome)).toContain("leaf-pods-own");
    expect(fake.asked.length).toBeLessThan(7);
  });
});

describe("an honest world", () => {
  it("passes every planned check, in the order of the plan", async () => {
    const { outcome } = await proveIn(() => {});
    expect(failedChecks(outcome)).toEqual([]);
    expect(outcome.passed).toBe(true);
    expect(outcome.evidence.map((e) => e.check)).toEqual(proofPlan(testInput()).map((p) => p.check));
    expect(outcome.message).toMatch(/^all \d+ checks passed$/);
  });

  it("gives opposite verdicts for the same request, each with a reason and a place", async () => {
    const { outcome } = await proveIn(() => {});
    expect(outcome.verdicts.map((v) => `${v.arm} ${v.pattern.replace(/marker-.*/, "marker")} ${v.expected} ${v.verdict} ${v.sandbox}`)).toEqual([
      "pods Alpine FLAGGED FLAGGED pod/pool-0",
      "pods Red Hat CLEAR CLEAR pod/pool-0",
      "remote Alpine CLEAR CLEAR remote/sbx-laptop-demo",
      "remote Red Hat FLAGGED FLAGGED remote/sbx-laptop-demo",
      "remote marker FLAGGED FLAGGED remote/sbx-laptop-demo",
      "miswired Alpine FLAGGED FLAGGED pod/pool-0",
    ]);
    expect(outcome.verdicts.every((v) => v.reason.length > 10)).toBe(true);
  });

  it("works where neither usual name tells the two apart: Debian 12 against Debian 13", async () => {
    const { outcome } = await proveIn((f) => {
      f.podFiles.set("/etc/os-release", DEBIAN_12);
      f.workerFiles.set("/etc/os-release", DEBIAN_13);
    });
    expect(outcome.message).toMatch(/^all/);
    expect(outcome.verdicts.slice(0, 2).map((v) => v.pattern)).toEqual(["bookworm", "trixie"]);
  });

  it("leaves nothing behind in the worker and never shows the secret half of the marker to a prompt", async () => {
    const { fake } = await proveIn(() => {});
    expect([...fake.workerFiles.keys()]).toEqual(["/etc/os-release"]);
    for (const { body } of fake.asked) expect(JSON.stringify(body)).not.toMatch(/[0-9a-f]{32}/);
  });

  it("asks with ids nobody used before", async () => {
    const a = await proveIn(() => {}), b = await proveIn(() => {});
    const ids = [...a.fake.asked, ...b.fake.asked].flatMap(({ body }) => [body.sessionId, body.item.item_id]);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

/** Replaces an arm's answer by `lie`. */
const lie = (armName: string, make: (honest: Record<string, unknown>, body: RunBody, f: FakeWorld) => unknown) => (f: FakeWorld) => {
  const honest = f.answer.bind(f);
  f.answer = (a, body) => (a === armName ? make(honest(a, body) as Record<string, unknown>, body, f) : honest(a, body)) as Record<string, unknown>;
};
const flagged = (h: Record<string, unknown>, body: RunBody, reason: string, sandbox: unknown) => ({ ...h, status: "done", verdict: { item_id: body.item.item_id, verdict: "FLAGGED", reason }, sandbox });
const onWorker = { kind: "remote", name: "sbx-laptop-demo" };

// What could be broken or forged, and the checks that must notice. Every planned check is in here at least once.
const mutations: [what: string, change: (f: FakeWorld) => void, noticed: string[], wrap?: (w: World, f: FakeWorld) => void][] = [
  ["the cluster does not answer", () => {}, ["cluster-answers"], (w) => (w.cluster.version = async () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:6443")))],
  ["the relay's Secret is missing", () => {}, ["cluster-answers"], (w) => (w.cluster.secret = async () => undefined)],
  ["the model refuses the key", (f) => (f.model = async () => ({ url: MODEL_URL, status: 401 })), ["model-answers"]],
  ["the model is out of order", (f) => (f.model = async () => ({ url: MODEL_URL, status: 503 })), ["model-answers"]],
  ["the model is unreachable", (f) => (f.model = async () => ({ url: MODEL_URL, error: "getaddrinfo ENOTFOUND" })), ["model-answers"]],
  ["the worker's container is gone", (f) => (f.container = undefined), ["worker-running"]],
  ["the worker's container is stopped", (f) => (f.container!.State = { Running: false, Status: "exited" }), ["worker-running"]],
  ["the worker's container is paused", (f) => (f.container!.State = { Running: true, Status: "paused" }), ["worker-running"]],
  ["the container is another worker", (f) => (f.container!.Config.Env![0] = "SANDBOX_ID=sbx-other"), ["worker-running"]],
  ["the container publishes a port", (f) => (f.container!.HostConfig.PortBindings = { "22/tcp": [{ HostPort: "2222" }] }), ["worker-trust"]],
  ["the container carries a token in its environment", (f) => f.container!.Config.Env!.push(`SANDBOX_TOKEN=${TOKEN}`), ["worker-trust"]],
  ["something listens in the worker", (f) => (f.procNet += "   1: 00000000:1F90 00000000:0000 0A\n"), ["worker-no-listener"]],
  ["/proc/net/tcp is unreadable", (f) => (f.procNet = ""), ["worker-no-listener"]],
  ["the pool is empty", (f) => (f.selectors["pool=default"] = 0), ["pool-pods"]],
  ["the remote arm has no remote flag", (f) => delete f.arms["arm-remote"]!.env.SH_REMOTE_SANDBOX, ["arms-wired"]],
  ["the pods arm has the remote flag", (f) => (f.arms["arm-pods"]!.env.SH_REMOTE_SANDBOX = "1"), ["arms-wired"]],
  ["the miswired arm is wired right", (f) => (f.arms["arm-miswired"] = f.arms["arm-remote"]!), ["arms-wired"]],
  ["an old revision still serves", (f) => (f.arms["arm-remote"]!.latestReady = "r-00000"), ["arms-wired"]],
  ["the pod's os-release is unreadable", (f) => f.podFiles.delete("/etc/os-release"), ["os-release-read"]],
  ["the pool's pods differ", (f) => (f.podExec = (pod) => ({ stdout: `NAME=${pod}`, stderr: "", exitCode: 0 })), ["os-release-read"]],
  ["both sides are the same system", (f) => f.podFiles.set("/etc/os-release", RED_HAT), ["patterns-discriminate"]],
  ["the worker is not attached", (f) => (f.presence = undefined), ["presence"]],
  ["the presence record is a ghost", (f) => (f.now += 3_600_000), ["presence"]],
  ["the record is of another transport", (f) => (f.presence = f.presence!.replace("grpc", "http")), ["presence"]],
  ["the remote selector matches a pod", (f) => (f.selectors["pool=remote-only"] = 1), ["remote-selector-empty"]],
  ["the query for the remote selector fails", () => {}, ["remote-selector-empty"], (w, f) => (w.cluster.runningPods = async (s) => (s === "pool=remote-only" ? Promise.reject(new Error("forbidden")) : f.pods))],
  ["the harness does not answer", () => {}, ["harness-answers"], (w) => (w.harness.health = async () => ({ status: 404, body: "", elapsedMs: 1 }))],
  ["the session ids were used before", () => {}, ["sessions-fresh"], (w) => (w.store.exists = async (k) => k.length)],
  ["sessions are kept under other keys", () => {}, ["sessions-recorded"], (w) => (w.store.exists = async () => 0)],
  ["an old verdict is replayed", lie("arm-pods", (h) => ({ ...h, verdict: { ...(h.verdict as object), item_id: "item-old" } })), ["leaf-pods-own", "leaf-pods-other"]],
  ["the harness hides where tools ran", lie("arm-remote", (h) => ({ ...h, sandbox: undefined })), ["leaf-remote-other", "leaf-remote-own", "marker-leaf-remote"]],
  ["verdict right, pod unknown", lie("arm-pods", (h) => ({ ...h, sandbox: { kind: "pod", name: "stranger" } })), ["leaf-pods-own", "leaf-pods-other", "marker-leaf-pods"]],
  ["the reason is empty", lie("arm-remote", (h) => ({ ...h, verdict: { ...(h.verdict as object), reason: " " } })), ["leaf-remote-other", "leaf-remote-own", "marker-leaf-remote"]],
  ["the remote arm says CLEAR because it could not read", lie("arm-remote", (h, { item }) => ({ ...h, verdict: { item_id: item.item_id, verdict: "CLEAR", reason: "could not read the file" } })), ["leaf-remote-other", "leaf-remote-own", "marker-leaf-remote"]],
  ["both arms use the worker", (f) => { f.route = () => ({ ...onWorker, files: f.workerFiles }); }, ["leaf-pods-own", "leaf-pods-other", "marker-leaf-pods", "miswired-control", "hops-agree"]],
  ["both arms use the worker and claim a pod", (f) => { const r = f.route.bind(f); f.route = (a) => ({ ...r(a), files: f.workerFiles }); }, ["leaf-pods-own", "leaf-pods-other", "marker-leaf-pods", "miswired-control", "hops-agree"]],
  ["both arms use pods and claim the worker", (f) => { const r = f.route.bind(f); f.route = (a) => ({ ...r(a), files: f.podFiles }); }, ["leaf-remote-other", "leaf-remote-own", "marker-leaf-remote", "hops-agree"]],
  ["the arms are swapped", (f) => { const r = f.route.bind(f); f.route = (a) => r(a === "arm-pods" ? "arm-remote" : "arm-pods"); }, ["leaf-pods-own", "leaf-pods-other", "leaf-remote-other", "leaf-remote-own", "marker-leaf-remote", "marker-leaf-pods", "hops-agree"]],
  // The strongest lie: a second machine with the worker's operating system that reports our worker's name.
  ["the remote arm runs on a look-alike of the worker", (f) => { const r = f.route.bind(f); f.route = (a) => (a === "arm-remote" ? { ...onWorker, files: new Map([["/etc/os-release", RED_HAT]]) } : r(a)); }, ["marker-leaf-remote", "hops-agree"]],
  ["the model says what the prompt wants to hear", lie("arm-remote", (h, body) => (/^marker/.test(body.item.pattern) ? flagged(h, body, `found ${body.item.pattern}`, onWorker) : h)), ["marker-leaf-remote"]],
  ["the model makes a marker up", lie("arm-remote", (h, body) => (/^marker/.test(body.item.pattern) ? flagged(h, body, `line 1: ${body.item.pattern} 00112233445566778899aabbccddeeff`, onWorker) : h)), ["marker-leaf-remote"]],
  ["the pods' model claims the marker", lie("arm-pods", (h, body) => (/^marker/.test(body.item.pattern) ? flagged(h, body, "found", { kind: "pod", name: "pool-0" }) : h)), ["marker-leaf-pods"]],
  ["the pods' leaf dies before it looks for the marker", lie("arm-pods", (h, body) => (/^marker/.test(body.item.pattern) ? { status: "failed", reason: "error", sandbox: h.sandbox } : h)), ["marker-leaf-pods"]],
  ["the marker cannot be written", (f) => { const e = f.workerExec.bind(f); f.workerExec = (c, i) => (c[2]?.startsWith("umask") ? { stdout: "", stderr: "Read-only file system", exitCode: 1 } : e(c, i)); }, ["marker-planted"]],
  ["pods and worker share a file system", (f) => { const e = f.podExec.bind(f); f.podExec = (p, c) => (c[0] === "test" ? { stdout: "", stderr: "", exitCode: 0 } : e(p, c)); }, ["marker-absent-on-pods"]],
  ["asking the pods for the marker fails", (f) => { const e = f.podExec.bind(f); f.podExec = (p, c) => (c[0] === "test" ? { stdout: "", stderr: "no such container", exitCode: 127 } : e(p, c)); }, ["marker-absent-on-pods"]],
  ["the marker cannot be removed", (f) => { const e = f.workerExec.bind(f); f.workerExec = (c, i) => (c[2]?.startsWith("rm") ? { stdout: "", stderr: "busy", exitCode: 1 } : e(c, i)); }, ["marker-removed"]],
  ["the miswired arm reaches the worker after all", (f) => { const r = f.route.bind(f); f.route = (a) => r(a === "arm-miswired" ? "arm-remote" : a); }, ["miswired-control", "hops-agree"]],
  // It knows the file's text and the marker, so only the machines in between can tell.
  ["the remote arm answers from a copy of everything the worker has", (f) => { const r = f.route.bind(f); f.route = (a) => (a === "arm-remote" ? { ...onWorker, files: new Map(f.workerFiles) } : r(a)); }, ["hops-agree"]],
  ["the harness names commands of an earlier leaf", (f) => { let first: unknown; const h = f.answer.bind(f); f.answer = (a, b) => { const x = h(a, b); if (a === "arm-remote") { first ??= x.tools; x.tools = first; } return x; }; }, ["hops-agree"]],
  ["the harness names no command", lie("arm-remote", (h) => ({ ...h, tools: [] })), ["hops-agree"]],
  ["the harness names no trace", lie("arm-pods", (h) => ({ ...h, traceId: undefined })), ["hops-agree"]],
  ["the relay has passed nothing on", () => {}, ["hops-agree"], (w) => (w.cluster.log = async () => "")],
  ["the worker's log cannot be read", () => {}, ["hops-agree"], (w) => (w.worker.log = async () => Promise.reject(new Error("docker logs: no such container")))],
  ["the worker vanishes while leaves run", () => {}, ["worker-still-there"], (w, f) => { let n = 0; w.store.presence = async () => (n++ ? undefined : f.presence); }],
];

describe("a broken or lying world turns the proof red", () => {
  it.each(mutations)("%s", async (_what, change, noticed, wrap) => {
    const { outcome } = await proveIn(change, testInput(), wrap);
    expect(outcome.passed).toBe(false);
    expect(failedChecks(outcome)).toEqual(noticed);
    expect(outcome.message).toContain(`check '${noticed[0]}' failed: expected `);
    expect(outcome.message).toContain("Next: ");
    expect(JSON.stringify(outcome)).not.toContain(TOKEN);
    expect(outcome.evidence.map((e) => e.check).sort()).toEqual(proofPlan(testInput()).map((p) => p.check).sort());
  });

  it("has a case for every planned check", () => {
    const covered = new Set(mutations.flatMap(([, , noticed]) => noticed));
    expect(proofPlan(testInput()).map((p) => p.check).filter((c) => !covered.has(c))).toEqual([]);
  });

  it("tells a model that refuses from a cluster that does not answer, with URL and status", async () => {
    const { outcome } = await proveIn((f) => (f.model = async () => ({ url: MODEL_URL, status: 403 })));
    expect(outcome.evidence[0]!.ok).toBe(true);
    expect(outcome.message).toContain(`${MODEL_URL}: HTTP 403 (the model endpoint refuses the key)`);
  });

  it("reports what comes after a fatal check as not run, by name", async () => {
    const { outcome } = await proveIn((f) => (f.presence = undefined));
    const last = outcome.evidence.find((e) => e.check === "leaf-remote-own")!;
    expect(last).toMatchObject({ ok: false, seen: "not run: 'presence' failed before it" });
  });

  it("aborts when fixed patterns match both sides", async () => {
    const { outcome } = await proveIn(() => {}, testInput({ patterns: { pods: "NAME", remote: "Red Hat" } }));
    expect(failedChecks(outcome)).toEqual(["patterns-discriminate"]);
  });
});
