// The proof: the order of its checks. What each of them believes is in rules.ts, trust.ts and patterns.ts.
import { patiently } from "./bounds";
import { fine, Ledger, Stop, wrong, type Outcome, type VerdictRow } from "./evidence";
import { commandCount, hopProblems, type Asked } from "./hops";
import type { ProofInput } from "./input";
import { ask, prepare, row, sessionKeys, type Prepared } from "./leaf";
import { newMarker, plant, remove } from "./marker";
import { choosePatterns, fingerprints, unmistakable, type Patterns } from "./patterns";
import { proofPlan } from "./plan";
import type { PodRef, World } from "./ports";
import { leafProblems, miswiredProblems, presenceProblems, strangerProblems, tell, type Expectation, type LeafAnswer } from "./rules";
import { checkEnvironment } from "./surroundings";

/** Where the proof looks. A test whose pods and worker share a file system has other places. */
export interface Where {
  osRelease: string;
  /** Folder for the marker. */
  markers: string;
}
export const WHERE: Where = { osRelease: "/etc/os-release", markers: "/tmp" };

interface Sides {
  pods: PodRef[];
  podText: string;
  workerText: string;
  patterns: Patterns;
}

/** Runs every check against `world`; never rejects. `secrets` are values that must not appear in the outcome. */
export async function prove(input: ProofInput, world: World, progress: (check: string) => void = () => {}, where = WHERE): Promise<Outcome> {
  const secrets: string[] = [];
  const ledger = new Ledger(proofPlan(input), (t) => secrets.reduce((all, s) => all.replaceAll(s, "[redacted]"), t), progress);
  const verdicts: VerdictRow[] = [];
  try {
    const pods = await checkEnvironment(ledger, input, world, secrets);
    const sides = await tellApart(ledger, input, world, pods, where.osRelease);
    await guard(ledger, input, world);
    await runLeaves(ledger, input, world, sides, verdicts, where);
  } catch (e) {
    if (!(e instanceof Stop)) throw e;
  }
  return ledger.close(verdicts);
}

/** Both os-release files, read directly, and the patterns that tell them apart. */
async function tellApart(ledger: Ledger, input: ProofInput, world: World, pods: PodRef[], file: string): Promise<Sides> {
  let podText = "", workerText = "";
  await ledger.must("os-release-read", `${file} of every pool pod (all the same) and of ${input.worker.container}`, async () => {
    const read = [...pods.map((p) => world.cluster.exec(p.name, ["cat", file])), world.worker.exec(["cat", file])];
    const texts = await Promise.all(read);
    const bad = texts.findIndex((t) => t.exitCode !== 0 || !t.stdout.trim());
    if (bad >= 0) return wrong(`cat in ${pods[bad]?.name ?? input.worker.container} ended with ${texts[bad]!.exitCode}: ${texts[bad]!.stderr}`);
    workerText = texts.pop()!.stdout;
    podText = texts[0]!.stdout;
    if (texts.some((t) => t.stdout !== podText)) return wrong("the pool's pods differ from each other");
    const pretty = (t: string) => fingerprints(t, "").find((f) => f.startsWith("PRETTY_NAME=")) ?? t.slice(0, 60);
    return fine(`pods ${pretty(podText)}; worker ${pretty(workerText)}`);
  });
  let patterns: Patterns | undefined;
  await ledger.must("patterns-discriminate", "each pattern in one file and not in the other, both ways", () => {
    const chosen = choosePatterns(podText, workerText, input.patterns);
    patterns = chosen.patterns;
    return patterns ? fine(`pods ${JSON.stringify(patterns.pods)}, remote ${JSON.stringify(patterns.remote)}`) : wrong("no usable patterns", ...chosen.problems);
  });
  return { pods, podText, workerText, patterns: patterns! };
}

/** What must hold before a leaf of the remote arm means anything. */
async function guard(ledger: Ledger, input: ProofInput, world: World): Promise<void> {
  await ledger.must("presence", `a fresh record of ${input.worker.id} with transport grpc`, () => patiently(world.patienceMs ?? 0, () => presence(input, world)));
  await ledger.must("remote-selector-empty", `no running pod matches ${input.remoteSelector}`, async () => {
    const found = await world.cluster.runningPods(input.remoteSelector);
    return found.length ? wrong(`${found.length} running: ${found.map((p) => p.name).join(", ")}`) : fine("0 running pods");
  });
}

async function presence(input: ProofInput, world: World) {
  const [raw, now] = [await world.store.presence(input.worker.id), await world.store.now()];
  return { seen: raw ?? "no record", problems: presenceProblems(raw, input.worker.id, now) };
}

async function runLeaves(ledger: Ledger, input: ProofInput, world: World, sides: Sides, verdicts: VerdictRow[], where: Where): Promise<void> {
  const { patterns } = sides;
  const marker = newMarker(where.markers);
  const os = (arm: Prepared["arm"], pattern: string) => prepare({ arm, file: where.osRelease, pattern });
  const q = {
    podsOwn: os("pods", patterns.pods),
    podsOther: os("pods", patterns.remote),
    remoteOther: os("remote", patterns.pods),
    remoteOwn: os("remote", patterns.remote),
    miswired: os("miswired", patterns.pods),
    markerRemote: prepare({ arm: "remote", file: marker.path, pattern: marker.tag }),
    markerPods: prepare({ arm: "pods", file: marker.path, pattern: marker.tag }),
  };
  const all = Object.values(q);
  await ledger.must("sessions-fresh", `none of ${all.length} new session ids was ever used`, async () => {
    const n = await world.store.exists(all.flatMap(sessionKeys));
    return n === 0 ? fine(`0 of ${all.length} known`) : wrong(`${n} keys exist`, "an old verdict would be replayed");
  });

  const podNames = sides.pods.map((p) => p.name);
  const ofPod = fingerprints(sides.podText, sides.workerText), ofWorker = fingerprints(sides.workerText, sides.podText);
  const expect = (p: Prepared, where: "pod" | "remote", verdict: "FLAGGED" | "CLEAR"): Expectation => {
    const remote = where === "remote";
    const sandbox = { kind: where, names: remote ? [input.worker.id] : podNames };
    return { itemId: p.itemId, verdict, sandbox, pattern: p.pattern, quotes: remote ? ofWorker : ofPod, foreign: unmistakable(remote ? ofPod : ofWorker), scripted: input.model.scripted };
  };
  const asked: Asked[] = [];
  const leaf = (check: string, p: Prepared, want: Expectation, problems: (a: LeafAnswer) => string[] = (a) => leafProblems(a, want), listed = true) =>
    ledger.check(check, `${listed ? want.verdict : "no trace"} from ${want.sandbox.kind}/${want.sandbox.names.join("|")} for ${JSON.stringify(p.pattern)}`, async () => {
      const a = await ask(world, input, p);
      asked.push({ name: check, remote: want.sandbox.kind === "remote", answer: a });
      if (listed) verdicts.push(row(p, want.verdict, a));
      return { seen: tell(a), problems: problems(a) };
    });

  await leaf("leaf-pods-own", q.podsOwn, expect(q.podsOwn, "pod", "FLAGGED"));
  await leaf("leaf-pods-other", q.podsOther, expect(q.podsOther, "pod", "CLEAR"));
  await leaf("leaf-remote-other", q.remoteOther, expect(q.remoteOther, "remote", "CLEAR"));
  await leaf("leaf-remote-own", q.remoteOwn, expect(q.remoteOwn, "remote", "FLAGGED"));

  if (await ledger.check("marker-planted", `a new file of 16 random bytes in ${input.worker.container}`, () => plant(world.worker, marker).then(() => fine(marker.path)))) {
    await ledger.check("marker-absent-on-pods", `no pool pod has ${marker.path}`, () => absent(world, sides.pods, marker.path));
    const want = { ...expect(q.markerRemote, "remote", "FLAGGED"), quotes: [marker.secret], foreign: [] };
    await leaf("marker-leaf-remote", q.markerRemote, want);
    const pod = expect(q.markerPods, "pod", "CLEAR");
    await leaf("marker-leaf-pods", q.markerPods, pod, (a) => strangerProblems(a, marker.secret, pod.sandbox), false);
  }
  // Also when planting failed: half of it may have happened.
  await ledger.check("marker-removed", `${marker.path} is gone`, () => remove(world.worker, marker).then(() => fine("gone")));

  // An arm with the remote flag on and the default selector: what a forgotten selector looks like.
  const asPod = expect(q.miswired, "pod", "FLAGGED");
  await leaf("miswired-control", q.miswired, asPod, (a) => miswiredProblems(a, expect(q.miswired, "remote", "CLEAR"), asPod));

  await ledger.check("sessions-recorded", "every session that ran is in Redis afterwards", async () => {
    const ran = all.filter((p) => verdicts.some((v) => v.arm === p.arm && v.pattern === p.pattern));
    const n = await world.store.exists(ran.map((p) => sessionKeys(p)[0]!));
    return n === ran.length && n > 0 ? fine(`${n} of ${ran.length}`) : wrong(`${n} of ${ran.length}`, "the check for fresh ids looked at keys the harness does not use");
  });
  await ledger.check("hops-agree", "relay and worker logged the commands of the remote leaves, under their traces, and none of the others'", () =>
    patiently(world.logLagMs ?? 0, async () => {
      const logs = { worker: await world.worker.log(), relay: await world.cluster.log(input.relay.service) };
      return { seen: `${commandCount(asked)} commands of ${asked.filter((l) => l.remote).length} remote leaves`, problems: hopProblems(asked, logs) };
    }));
  await ledger.check("worker-still-there", "presence after all leaves", () => presence(input, world));
}

async function absent(world: World, pods: PodRef[], path: string) {
  const tests = await Promise.all(pods.map((p) => world.cluster.exec(p.name, ["test", "-e", path])));
  const odd = tests.findIndex((t) => t.exitCode !== 1);
  // Only 1 says "not there"; anything else is no answer to the question.
  if (odd >= 0) return wrong(`test -e in ${pods[odd]!.name} ended with ${tests[odd]!.exitCode} ${tests[odd]!.stderr}`);
  return fine(`absent on ${pods.length} pods`);
}
