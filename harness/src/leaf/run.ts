import path from "node:path";
import type { Logger } from "@dialout/common";
import type { ModelMessage } from "ai";
import { turnLimit, type Envelope } from "../envelope";
import { chooseModel, type ChosenModel } from "../model/provider";
import type { Leased } from "../sandbox/pool";
import type { Services } from "../services";
import { insist } from "../store/redis";
import { SessionLog, summarize, type History } from "../store/session-log";
import { sandboxPath } from "../tools/shell";
import { decide } from "./decision";
import { runLoop, type LoopOutput, type LoopTrail } from "./loop";
import { reviewPrompt } from "./prompt";
import { LeafFailure, type Evidence, type LeafResult, type Outcome } from "./result";
import type { Trace } from "./trace";
import { checkOut } from "./worktree";

export interface LeafRun {
  sid: string;
  envelope: Envelope;
  trace: Trace;
  /** Aborted when the harness gives the leaf up. */
  signal: AbortSignal;
  log: Logger;
}

/**
 * Runs one leaf to its end. Never rejects but with StoreError, and only before anything was run: every other outcome,
 * failures included, is the result. What the session log already holds is answered from there.
 */
export async function runLeaf(services: Services, run: LeafRun): Promise<LeafResult> {
  const { settings } = services;
  const { envelope, log } = run;
  const session = new SessionLog(services.store, run.sid, settings.sessionTtlS);
  let history = summarize(await session.read());
  const start = Date.now();
  const trail: LoopTrail = { records: [], turns: 0 };
  const evidence: Evidence = { traceId: run.trace.traceId };
  let outcome: Outcome;
  try {
    if (envelope.kind === "solve") throw new LeafFailure("bad_inputs", "kind 'solve' is not supported by this harness; use 'converge' or 'prompt'");
    if (envelope.workloadId) throw new LeafFailure("bad_inputs", "workloadId is not supported: no context service is configured");
    if (envelope.decision) history = await decide(session, history, envelope.decision);
    const known = envelope.kind === "converge" ? answerFrom(history) : undefined;
    if (known) {
      log.info({ status: known.status }, "answered from the session log");
      return envelope.decision ? known : { ...known, ...history.by, replayed: true };
    }
    const chosen = chooseModel(settings.model, envelope);
    evidence.model = { provider: chosen.provider, id: chosen.id };
    const sandbox = await services.sandboxes.lease(run.sid, run.signal);
    try {
      evidence.sandbox = { kind: sandbox.kind, name: sandbox.name };
      log.info({ sandbox: sandbox.name, kind: sandbox.kind, provider: chosen.provider, model: chosen.id }, "leaf started");
      await best(log, session.append({ type: "started", sandbox: sandbox.name, model: chosen.id }));
      outcome = await work(services, run, { session, history, chosen, sandbox, trail });
    } finally {
      if (trail.served) evidence.model = servedBy(chosen, trail.served);
      await sandbox.release();
    }
  } catch (e) {
    outcome = failureOf(e, log);
  }
  const result: LeafResult = { ...outcome, ...evidence, usage: trail.usage, tools: trail.records, turns: trail.turns, elapsedMs: Date.now() - start };
  // A saturated leaf has not begun; it is tried again.
  if (outcome.status !== "failed" || outcome.reason !== "saturated") await best(log, session.append({ type: "ended", status: outcome.status, reason: outcome.status === "failed" ? outcome.reason : undefined }));
  return result;
}

/** The endpoint's own word for its model decides whether it was a language model at all. */
const servedBy = ({ provider, id }: ChosenModel, served: string) => ({ provider, id, served, scripted: /^scripted-/.test(served) });

interface Work {
  session: SessionLog;
  history: History;
  chosen: ChosenModel;
  sandbox: Leased;
  trail: LoopTrail;
}

async function work(services: Services, run: LeafRun, { session, history, chosen, sandbox, trail }: Work): Promise<Outcome> {
  const { envelope, log } = run;
  if (envelope.kind === "solve") throw new LeafFailure("bad_inputs", "unsupported kind");
  const harnessCwd = process.cwd();
  const tree = await checkOut(sandbox, run, envelope);
  try {
    const cwd = tree?.dir ?? sandbox.cwd;
    const needsApproval = envelope.kind === "converge" && envelope.item.require_approval === true && !history.decision;
    const messages: ModelMessage[] = [{ role: "user", content: envelope.kind === "prompt" ? envelope.prompt : reviewPrompt({
      itemId: envelope.item.item_id,
      file: targetFile(envelope, harnessCwd, cwd),
      pattern: envelope.item.pattern,
      needsApproval,
      decision: history.decision,
    }) }];
    const output = await runLoop({
      chosen,
      settings: services.settings.model,
      messages,
      maxTurns: turnLimit(envelope.maxTurns, services.settings.maxTurns),
      signal: run.signal,
      log,
      tools: {
        sandbox: { transport: sandbox.transport, cwd, place: sandbox.place },
        harnessCwd,
        traceparent: run.trace.traceparent,
        reporting: envelope.kind === "converge" ? { itemId: envelope.item.item_id, verdict: !needsApproval, approval: true } : undefined,
      },
      onCall: (record) => {
        services.metrics.toolCall(record);
        log.info({ tool: record.tool, ok: record.ok, ms: record.ms, execs: record.execs.map((e) => ({ exec_id: e.execId, exit: e.exitCode, error: e.error, kill: e.kill })) }, "tool call");
        for (const e of record.execs) if (e.kill?.verified === false) log.warn({ exec_id: e.execId, remaining: e.kill.remaining, detail: e.kill.detail }, "a command was ended, but nobody could verify that nothing of it is left");
        void best(log, session.append({ type: "tool", tool: record.tool, ok: record.ok, ms: record.ms }));
      },
    }, trail);
    const by = { sandbox: { kind: sandbox.kind, name: sandbox.name }, model: servedBy(chosen, output.served) };
    return await conclude(session, envelope.kind, output, by, log);
  } finally {
    await tree?.clean();
  }
}

/** The exact absolute path the model is told to read. */
function targetFile(envelope: Extract<Envelope, { kind: "converge" }>, harnessCwd: string, cwd: string): string {
  const file = envelope.workspaceRef ? path.posix.join(envelope.workspaceRef, envelope.item.file) : envelope.item.file;
  return sandboxPath(file, harnessCwd, cwd);
}

async function conclude(session: SessionLog, kind: string, o: LoopOutput, by: History["by"], log: Logger): Promise<Outcome> {
  const said = o.text.trim() ? ` The model's last words: ${JSON.stringify(o.text.trim().slice(0, 1000))}` : "";
  if (o.report.verdict) {
    const verdict = o.report.verdict;
    await best(log, insist(() => session.append({ type: "verdict", verdict, by })));
    return { status: "done", verdict };
  }
  if (o.report.gate) {
    const gateId = crypto.randomUUID();
    const gate = o.report.gate;
    // Without this entry no decision could ever be matched, so here a failure counts.
    await insist(() => session.append({ type: "gate", gateId, ...gate }));
    return { status: "paused", gateId, gate };
  }
  if (o.exhausted) throw new LeafFailure("no_verdict", `the limit of ${o.turns} turns was reached.${said}`);
  if (kind === "prompt") return { status: "responded", text: o.text };
  if (o.report.invalid) throw new LeafFailure("invalid_verdict", `no verdict was acceptable; the last one: ${o.report.invalid}.${said}`);
  throw new LeafFailure("no_verdict", `the model ended without a verdict.${said}`);
}

function answerFrom(h: History): Outcome | undefined {
  if (h.verdict) return { status: "done", verdict: h.verdict };
  if (h.decision?.action === "abort") return { status: "aborted" };
  if (h.gate) return { status: "paused", gateId: h.gate.gateId, gate: { summary: h.gate.summary, proposed_action: h.gate.proposed_action } };
  return undefined;
}

function failureOf(e: unknown, log: Logger): Outcome {
  if (e instanceof LeafFailure) {
    log.warn({ reason: e.reason, cause: e.message }, "leaf failed");
    return { status: "failed", reason: e.reason, message: e.message };
  }
  const { name, message } = e as Error;
  if (name === "StoreError") log.warn({ cause: message }, "leaf failed");
  else log.error({ err: e }, "leaf failed");
  return { status: "failed", reason: "error", message };
}

/** For log entries that are good to have: their loss is noted and changes nothing else. */
async function best(log: Logger, entry: Promise<void>): Promise<void> {
  await entry.catch((e: Error) => log.warn({ cause: e.message }, "session log entry lost"));
}
