// The longer demonstrations. Each one measures; what it makes of the measurement is in vignette-rules.ts.
import type { ExecResult } from "@dialout/transports";
import { until } from "./bounds";
import { fine, Ledger, Stop, wrong, type Finding, type Outcome, type VerdictRow } from "./evidence";
import type { ProofInput } from "./input";
import type { StorePort } from "./ports";
import { presenceProblems } from "./rules";
import type { Stage } from "./stage";
import { cleanUp, scratch, size, Watch, type Scratch } from "./vignette-tools";
import { capProblems, goneProblems, onceProblems, spreadProblems, timeoutProblems } from "./vignette-rules";
import { vignettePlan } from "./vignette-plan";

/** Presence follows the worker within the relay's liveness deadline, and some. */
const PRESENCE_MS = 75_000;
const CAP = 64 * 1024;
const FLOOD = 1_000_000;
/** Longer than any of the plugs is pulled. */
const COMMAND_S = 180;

export interface Props {
  stage: Stage;
  store: StorePort;
}

/** Runs every demonstration on `stage` and leaves the worker attached and clean, whatever happened; never rejects for a failed one. */
export async function demonstrate(input: ProofInput, props: Props, progress?: (check: string) => void): Promise<Outcome> {
  const ledger = new Ledger(vignettePlan(input), undefined, progress);
  const verdicts: VerdictRow[] = [];
  const place = scratch();
  const { stage } = props;
  const check = (name: string, expected: string, look: () => Promise<Finding>) => ledger.check(name, expected, look);
  try {
    await ledger.must("presence-before", "the worker is attached", () => presence(input, props.store));
    await ledger.must("scratch", "a folder for the demonstrations in the worker", async () => {
      const r = await stage.transport.exec(`mkdir -m 700 ${place.dir} && id -un`, { timeout: 10 });
      return r.exitCode === 0 ? fine(`${place.dir} of ${r.stdout.toString().trim()}`) : wrong(r.stderr.toString());
    });
    await check("streaming", "5 lines, 0.4 s apart, arrive as they are written", () => streaming(stage));
    await check("abort-kills-all", "after an abort neither a background child nor a setsid escapee goes on", () => abort(stage, place));
    await check("timeout-worker", "the worker ends `sleep 30` after 1 s, the caller has no timer", () => timeoutAtWorker(stage));
    await check("timeout-caller", "the caller gives up after 2 s although the worker is frozen", () => timeoutAtCaller(stage));
    await check("output-cap", `${FLOOD} bytes are cut at ${CAP}`, () => outputCap(stage));
    await check("relay-restart", "a running command outlives its relay: redelivered, run once", () => surviving(stage, place, "relay", () => relayRestart(input, props)));
    await check("network-cut", "a running command outlives a network cut: redelivered, run once", () => surviving(stage, place, "cut", () => cutAndMend(input, props)));
    await check("stop-start", "docker stop and start: reported as interrupted, not run again, presence gone and back", () => stopStart(input, props, place));
    await check("works-again", "after all this the worker runs commands", async () => {
      const r = await stage.transport.exec("echo still here", { timeout: 30 });
      return r.stdout.toString() === "still here\n" ? fine(`exit ${r.exitCode}`) : wrong(r.stdout.toString());
    });
    await check("cleaned-up", `${place.dir} is gone`, () => cleanUp(stage, place));
  } catch (e) {
    if (!(e instanceof Stop)) throw e;
  }
  return ledger.close(verdicts);
}

async function presence(input: ProofInput, store: StorePort): Promise<Finding> {
  const raw = await store.presence(input.worker.id);
  return { seen: raw ?? "no record", problems: presenceProblems(raw, input.worker.id, await store.now()) };
}

const attached = (input: ProofInput, store: StorePort, yes: boolean) =>
  until(`presence of ${input.worker.id} is ${yes ? "there" : "gone"}`, PRESENCE_MS, async () => ((await presence(input, store)).problems.length === 0) === yes);

async function streaming(stage: Stage): Promise<Finding> {
  const watch = new Watch();
  const r = await stage.transport.exec("for i in 1 2 3 4 5; do echo line $i; sleep 0.4; done", { timeout: 20, onData: () => watch.tick() });
  return { seen: `${watch.times.length} arrivals over ${watch.spread()} ms`, problems: spreadProblems(watch.times, r.stdout.toString()) };
}

async function abort(stage: Stage, { dir }: Scratch): Promise<Finding> {
  const tick = (file: string) => `while :; do echo x >> ${dir}/${file}; sleep 0.05; done`;
  const command = `( ${tick("child")} ) & setsid -f bash -c '${tick("escapee")}' < /dev/null > /dev/null 2>&1; echo started; wait`;
  const stop = new AbortController();
  const error = await stage.transport.exec(command, { timeout: 30, signal: stop.signal, onData: async () => {
    // Both must be seen to tick first: something that never ran is no proof of a kill.
    await until("both processes tick", 10_000, async () => (await size(stage, `${dir}/child`)) > 4 && (await size(stage, `${dir}/escapee`)) > 4);
    stop.abort();
  } }).then(() => undefined, (e: Error) => e);
  const measure = async () => [await size(stage, `${dir}/child`), await size(stage, `${dir}/escapee`)];
  const before = await measure();
  await new Promise((r) => setTimeout(r, 1200));
  const after = await measure();
  return { seen: `${error?.message ?? "no error"}; bytes written ${before.join("+")}, 1.2 s later ${after.join("+")}`, problems: goneProblems(error, before, after) };
}

async function timeoutAtWorker(stage: Stage): Promise<Finding> {
  const r = await stage.bare("sleep 30", 1);
  return { seen: `${r.error ?? `exit ${r.exitCode}`} after ${r.elapsedMs} ms`, problems: timeoutProblems(r.error, "timeout:1", r.elapsedMs, 1000) };
}

async function timeoutAtCaller(stage: Stage): Promise<Finding> {
  await stage.freeze();
  try {
    const watch = new Watch();
    const error = await stage.transport.exec("sleep 30", { timeout: 2 }).then(() => undefined, (e: Error) => e);
    const ms = watch.elapsed();
    return { seen: `${error?.message ?? "no error"} after ${ms} ms`, problems: timeoutProblems(error?.message, "timeout:2", ms, 2000) };
  } finally {
    await stage.thaw();
  }
}

async function outputCap(stage: Stage): Promise<Finding> {
  const r = await stage.transport.exec(`yes | head -c ${FLOOD}`, { timeout: 30, outputCap: CAP });
  return { seen: `${r.stdout.length} bytes, truncated ${r.truncated}`, problems: capProblems(r, CAP) };
}

/** A command that appends to a file and goes on until it is let go; in between, `meanwhile` happens to its link. */
async function surviving(stage: Stage, { dir }: Scratch, name: string, meanwhile: () => Promise<void>): Promise<Finding> {
  const file = `${dir}/${name}`;
  const { outcome, running } = start(stage, `echo ran >> ${file}; echo running; until [ -e ${file}.go ]; do sleep 0.1; done; wc -l < ${file}`);
  await running;
  const watch = new Watch();
  await meanwhile();
  const away = watch.elapsed();
  await stage.transport.exec(`touch ${file}.go`, { timeout: 30 });
  const { result, error } = await outcome;
  const lines = await count(stage, file);
  const seen = `${error ? error.message : `exit ${result!.exitCode}`}, ${result?.deliveries ?? "?"} deliveries, effect ${lines} time(s), link away or replaced after ${away} ms`;
  return { seen, problems: onceProblems(result, error, lines) };
}

interface Ended {
  result?: ExecResult;
  error?: Error & { code?: string };
}

/** `running` settles with the command's first output, or with its end when that comes first. */
function start(stage: Stage, command: string): { outcome: Promise<Ended>; running: Promise<unknown> } {
  let began = () => {};
  const first = new Promise<void>((resolve) => (began = resolve));
  const outcome = stage.transport.exec(command, { timeout: COMMAND_S, onData: () => began() }).then((result): Ended => ({ result }), (error: Error): Ended => ({ error }));
  return { outcome, running: Promise.race([first, outcome]) };
}

const count = async (stage: Stage, file: string) => (await stage.transport.exec(`wc -l < ${file}`, { timeout: 60 })).stdout.toString().trim();

/** Keeps the network away until the relay has given the link up: a shorter cut is TCP's business, not ours. */
async function cutAndMend(input: ProofInput, { stage, store }: Props): Promise<void> {
  await stage.cut();
  try {
    await attached(input, store, false);
  } finally {
    await stage.mend();
  }
  await attached(input, store, true);
}

async function relayRestart(input: ProofInput, { stage, store }: Props): Promise<void> {
  await stage.restartRelay();
  await attached(input, store, true);
}

async function stopStart(input: ProofInput, { stage, store }: Props, { dir }: Scratch): Promise<Finding> {
  const file = `${dir}/stop`;
  const { outcome, running } = start(stage, `echo ran >> ${file}; echo running; sleep 40; echo ran >> ${file}`);
  await running;
  const watch = new Watch();
  await stage.stop();
  try {
    await attached(input, store, false);
  } finally {
    await stage.start();
  }
  const gone = watch.elapsed();
  await attached(input, store, true);
  const { result, error } = await outcome;
  const ended = error ? (error.code ?? error.message) : `ended with exit ${result!.exitCode}`;
  const lines = await count(stage, file);
  const problems = [...(ended === "interrupted" ? [] : [`the caller was told '${ended}'`]), ...(lines === "1" ? [] : [`the effect happened ${lines} times`])];
  return { seen: `${ended}, effect ${lines} time(s), presence gone ${gone} ms after docker stop`, problems };
}
