import { randomUUID } from "node:crypto";
import path from "node:path";
import { type Env, type Logger } from "@dialout/common";
import { Registry } from "./exec/registry";
import { Journal } from "./journal/journal";
import { claimStateDir } from "./journal/lock";
import { hunt, Quarry } from "./kill/hunt";
import { ProcFs } from "./kill/procfs";
import { Metrics } from "./metrics";
import { chooseIsolation, lineage } from "./run/isolation";
import { Spawner } from "./run/spawner";
import { readSettings } from "./settings";
import { makeHello } from "./wire/hello";
import { Link } from "./wire/link";

export interface Worker {
  /** Time that running commands get to end by themselves. */
  readonly drainMs: number;
  stop(signal: AbortSignal): Promise<void>;
}

/** At shutdown: how long the last output and outcomes may take to be handed to the relay. */
const LAST_WORDS_MS = 1_000;

/** Starts a worker from the environment. Throws SettingError for what the user must change. */
export async function startWorker(env: Env, log: Logger): Promise<Worker> {
  const asked = readSettings(env);
  const settings = { ...asked, stateDir: { ...asked.stateDir, path: claimStateDir(asked.stateDir, log) } };
  const journal = new Journal(settings.stateDir.path, log);
  const proc = new ProcFs();
  await killSurvivors(journal, proc, log);

  const spawner = await Spawner.start(path.join(settings.stateDir.path, "pipes"));
  const { launcher, inForce, warnings } = await chooseIsolation(settings, env, spawner, proc, log);
  log.info({ isolation: launcher.kind, leftovers: settings.leftovers, state_dir: settings.stateDir.path }, inForce);
  for (const w of warnings) log.warn(w);

  const metrics = new Metrics();
  const server = settings.metrics && (await metrics.serve(settings.metrics, log));
  const registry = new Registry(settings, launcher, journal, log, metrics);
  const link = new Link(settings, makeHello(settings, env, { instanceId: randomUUID(), journalId: journal.id }), registry, log, metrics);

  process.on("exit", () => registry.killNow());
  void spawner.lost.then((why) => {
    log.fatal(`the helper process that starts commands has ended (${why}): how running commands end can no longer be known. They are killed and count as interrupted. Start the worker again`);
    process.exit(1);
  });
  const stop = async (signal: AbortSignal) => {
    await registry.drain(signal);
    await registry.delivered(LAST_WORDS_MS);
    await link.close();
    launcher.close();
    spawner.close();
    server?.close();
    journal.close();
  };
  void link.run().then(async (why) => {
    if (why === "stopped") return;
    await registry.drain(AbortSignal.abort());
    process.exit(1);
  });
  return { drainMs: settings.drainMs, stop };
}

/** Ends whatever an earlier worker on this journal left running, before anything new is run. */
async function killSurvivors(journal: Journal, proc: ProcFs, log: Logger): Promise<void> {
  const own = lineage(proc, process.pid);
  for (const { key, marks } of journal.interrupted) {
    const result = await hunt(new Quarry(marks, proc, own, -1), proc, { takeSuspects: () => false });
    log.warn({ exec_id: key, ...result }, result.found > 0 ? "an earlier worker was interrupted in this command; its processes are killed" : "an earlier worker was interrupted in this command; nothing of it is left");
  }
}
