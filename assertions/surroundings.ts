// The first checks: is everything there that a leaf needs, and is the worker's container what it should be?
import { patiently } from "./bounds";
import { describe, fine, wrong, type Finding, type Ledger } from "./evidence";
import type { ProofInput } from "./input";
import type { ArmState, Inspected, PodRef, World } from "./ports";
import { openListeners, trustProblems } from "./trust";

/** Returns the pool's running pods. Secrets that it reads are added to `secrets`. */
export async function checkEnvironment(ledger: Ledger, input: ProofInput, world: World, secrets: string[]): Promise<PodRef[]> {
  const { cluster, worker } = world;
  // What is still starting is not broken yet; what comes after these checks gets no second look.
  const starting = (look: () => Promise<Finding>) => patiently(world.patienceMs ?? 0, look);
  await ledger.must("cluster-answers", "the API server answers", () => starting(async () => {
    try {
      const version = await cluster.version();
      const tokens = Object.values((await cluster.secret(input.relay.secret)) ?? {});
      secrets.push(...tokens.filter((t) => t.length >= 8));
      return tokens.length ? fine(`${cluster.server} ${version}`) : wrong(`${cluster.server} ${version}`, `Secret ${input.relay.secret} is missing or empty`);
    } catch (e) {
      return wrong(`${cluster.server}: ${describe(e)}`, "the cluster is unreachable or refuses");
    }
  }));
  await ledger.must("arms-wired", "each arm's live environment is that of its side, its newest revision ready", () => starting(() => armsWired(input, world)));
  await ledger.must("harness-answers", "200 from /health of all three arms", () => starting(() => harnessAnswers(input, world)));
  await ledger.must("model-answers", `${input.model.label} answers the harness`, () => starting(() => modelAnswers(world)));

  let container: { parsed: Inspected; raw: string } | undefined;
  await ledger.must("worker-running", `container ${input.worker.container} runs as worker ${input.worker.id}`, async () => {
    container = await worker.inspect();
    if (!container) return wrong("there is no such container");
    const { State, Config, Id } = container.parsed;
    const id = Config.Env?.find((e) => e.startsWith("SANDBOX_ID="))?.slice("SANDBOX_ID=".length) ?? "none";
    const seen = `${Id.slice(0, 12)} ${State.Status}, SANDBOX_ID ${id}`;
    // A paused container has Running set as well.
    const runs = State.Running && State.Status === "running";
    return runs && id === input.worker.id ? fine(seen) : wrong(seen, runs ? "it is another worker" : "it does not run");
  });
  const { parsed, raw } = container!;
  await ledger.check("worker-trust", "no published port, no mount, no host namespace, only the three settings, no token to be seen", async () => {
    const problems = trustProblems(parsed, raw, await worker.imageEnv(parsed.Image), input.worker.id, secrets);
    const own = `network ${parsed.HostConfig.NetworkMode}, ports none, mounts ${parsed.Mounts.length}`;
    return { seen: problems.length ? "inspected" : own, problems };
  });
  await ledger.check("worker-no-listener", "nothing listens in the worker's network namespace beyond its loopback", async () => {
    const net = await worker.exec(["sh", "-c", "cat /proc/net/tcp; cat /proc/net/tcp6 2>/dev/null || true"]);
    if (net.exitCode !== 0 || !net.stdout.includes("local_address")) return wrong("/proc/net/tcp could not be read");
    const open = openListeners(net.stdout);
    return open.length ? wrong(`${open.length} listening: ${open.join(", ")}`) : fine("0 listening sockets");
  });

  let pods: PodRef[] = [];
  await ledger.must("pool-pods", `at least one running pod for ${input.poolSelector}, and all of them ready`, () => starting(async () => {
    pods = await cluster.runningPods(input.poolSelector);
    const starts = pods.filter((p) => p.ready === false).map((p) => p.name);
    if (starts.length) return wrong(`${pods.length} running`, `not ready: ${starts.join(", ")}`);
    return pods.length ? fine(pods.map((p) => p.name).join(", ")) : wrong("0 running pods");
  }));
  return pods;
}

async function modelAnswers({ model }: World): Promise<Finding> {
  const { url, status, error } = await model.probe();
  if (status === undefined) return wrong(`${url}: ${error ?? "no answer"}`, "the model endpoint is unreachable from the harness; the cluster itself answers");
  const seen = `${url}: HTTP ${status}`;
  if (status === 401 || status === 403) return wrong(seen, "the model endpoint refuses the key");
  // 404 and the like: an endpoint that does not list its models, but it is there.
  return status < 500 && status !== 429 ? fine(seen) : wrong(seen, "the model endpoint is not able to serve");
}

/** A service that does not answer, told apart from a model that does not. */
async function harnessAnswers(input: ProofInput, world: World): Promise<Finding> {
  const arms = Object.values(input.arms);
  const answers = await Promise.all(arms.map((a) => world.harness.health(a)));
  const bad = answers.findIndex((a) => a.status !== 200);
  const list = answers.map((a, i) => `${arms[i]} ${a.status} in ${a.elapsedMs} ms`).join(", ");
  return bad < 0 ? fine(list) : wrong(list, `${arms[bad]} answered ${answers[bad]!.status}`);
}

async function armsWired(input: ProofInput, { cluster }: World): Promise<Finding> {
  const problems: string[] = [];
  const seen: string[] = [];
  for (const [arm, flag, selector] of [["pods", false, input.poolSelector], ["remote", true, input.remoteSelector], ["miswired", true, input.poolSelector]] as const) {
    const state = await cluster.arm(input.arms[arm]);
    seen.push(`${arm}: remote ${state.env.SH_REMOTE_SANDBOX ?? "off"}, ${state.env.KAGENTI_SANDBOX_POOL_SELECTOR ?? "no selector"}`);
    problems.push(...armProblems(state, flag, selector).map((p) => `${input.arms[arm]} ${p}`));
  }
  return { seen: seen.join("; "), problems };
}

export function armProblems(state: ArmState, remote: boolean, selector: string): string[] {
  const problems: string[] = [];
  if ((state.env.SH_REMOTE_SANDBOX === "1") !== remote) problems.push(`has SH_REMOTE_SANDBOX=${state.env.SH_REMOTE_SANDBOX ?? "(unset)"}`);
  if (state.env.KAGENTI_SANDBOX_POOL_SELECTOR !== selector) problems.push(`selects ${state.env.KAGENTI_SANDBOX_POOL_SELECTOR ?? "nothing"}, not ${selector}`);
  if (!state.ready || state.latestCreated !== state.latestReady) problems.push(`serves revision ${state.latestReady || "none"}, newest is ${state.latestCreated || "none"}`);
  return problems;
}
