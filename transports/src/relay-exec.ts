import { Backoff, delay } from "@dialout/common";
import { Exec, type End } from "@dialout/proto";
import { status, type CallOptions, type ServiceError } from "@grpc/grpc-js";
import { randomUUID } from "node:crypto";
import { neverStarted, TransportError, unverified } from "./errors";
import { requestIds } from "./ids";
import { Intake } from "./intake";
import type { Limits } from "./options";
import { makeResult, STOP_ABORTED, stopTimeout, Timers, withIds, type Stop } from "./outcome";
import { listen, type Ending } from "./relay-delivery";
import { fromExecError, fromStatus, type Failure, type Where } from "./relay-failure";
import type { Peer, RelayLink } from "./relay-link";
import type { ExecOptions, ExecResult, KillReport } from "./types";

/** All in milliseconds. */
export interface RelayTiming {
  /** How long a command is handed over again after its link was lost, and may go on without us. */
  graceMs: number;
  /** The same before this transport has ever reached its sandbox. */
  connectMs: number;
  /** Room that our own timer leaves the worker's to report first. */
  slackMs: number;
  /** How long an Abort may take to be confirmed. */
  abortWaitMs: number;
  /** A command that goes on past its output cap is aborted after this time. */
  floodMs: number;
}

export interface ExecDeps {
  link: RelayLink;
  where: Where;
  timing: RelayTiming;
}

type Step = { result: ExecResult } | Failure;

/** A worker that keeps disowning the journal it just announced is not asked for ever. */
const MAX_FRESH_STARTS = 3;
const ABORT_RETRY_MS = 200;

/** One command from first delivery to outcome, over as many deliveries as its link needs. Use once. */
export class RelayExec {
  readonly execId = randomUUID();
  private reqId = requestIds.next();
  private readonly intake: Intake;
  private readonly halt = new AbortController();
  private readonly stopping = new AbortController();
  private readonly timers = new Timers();
  private stopped: Stop | undefined;
  private deliveries = 0;
  /** As told to the worker: the deliveries that a worker may have seen. */
  private delivery = 0;
  /** Who may have seen the command. The link may learn of another worker meanwhile; to that one the command would look new. */
  private pinned: Peer | undefined;
  private freshStarts = 0;
  private accepted = false;
  private sawEvent = false;
  private done = false;

  constructor(private readonly deps: ExecDeps, private readonly command: string, private readonly options: ExecOptions, private readonly limits: Limits) {
    this.intake = new Intake(limits.cap, options.onData, {
      flooded: () => this.timers.after(deps.timing.floodMs, () => this.stop({ code: "flood" })),
      lost: (message) => this.stop({ code: "output_lost", message }),
      listenerFailed: (cause) => this.stop({ code: "listener", cause }),
    });
  }

  async run(): Promise<ExecResult> {
    const { signal } = this.options;
    const { timeout } = this.limits;
    const onAbort = () => this.stop(STOP_ABORTED);
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
    if (timeout > 0) this.timers.after(timeout * 1000 + this.deps.timing.slackMs, () => this.stop(stopTimeout(timeout)));
    try {
      return await this.deliverUntilKnown();
    } finally {
      this.done = true;
      signal?.removeEventListener("abort", onAbort);
      this.timers.clear();
    }
  }

  /** Has the command killed and bounds the wait for the answer. Only the first reason counts. */
  stop(why: Stop): void {
    if (this.stopped || this.done) return;
    this.stopped = why;
    this.intake.flow.mute();
    this.stopping.abort();
    if (this.deliveries === 0) return this.halt.abort();
    void this.sendAbort(performance.now() + this.deps.timing.abortWaitMs);
    this.timers.after(this.deps.timing.abortWaitMs, () => this.halt.abort());
  }

  private async deliverUntilKnown(): Promise<ExecResult> {
    const { link, timing } = this.deps;
    const backoff = new Backoff(100, 1_000);
    let graceEnd: number | undefined;
    let first: TransportError | undefined;
    for (;;) {
      this.sawEvent = false;
      const step = await this.attempt();
      if ("result" in step) return step.result;
      if (this.sawEvent || graceEnd === undefined) {
        graceEnd = performance.now() + (link.everGood ? timing.graceMs : Math.min(timing.graceMs, timing.connectMs));
        first = step.error;
        backoff.reset();
      }
      const left = graceEnd - performance.now();
      // Once the command runs, what broke its link is the news, not that the last of many tries failed too.
      if (left <= 0) throw this.failed((this.accepted && first) || step.error, this.accepted ? unverified("the link is lost; the worker ends the command when its own grace time is over") : undefined);
      if (step.next === "redeliver") await delay(Math.min(backoff.next(), left), (this.stopped ? this.halt : this.stopping).signal);
    }
  }

  /** One delivery: the result, or a failure after which another delivery is allowed. Throws when this is the end. */
  private async attempt(): Promise<Step> {
    const { link, where } = this.deps;
    let peer: Peer;
    try {
      peer = this.pinned ?? (await link.peer(this.halt.signal));
    } catch (e) {
      const { code, details } = e as ServiceError;
      return this.permit(fromStatus(code ?? status.UNKNOWN, details ?? String(e), where), undefined);
    }
    // A stopped command is asked about again only where it is known to have started: elsewhere asking would start it.
    if (this.halt.signal.aborted || (this.stopped && !(this.accepted && peer.extended))) return { result: this.stoppedResult() };
    this.pinned = peer;
    this.deliveries++;
    this.delivery++;
    const call = link.exec(this.message(peer), this.callOptions(peer));
    const ending = await listen(call, { accepted: () => this.onAccepted(), chunk: (c) => this.onChunk(c, peer.extended) }, this.halt.signal);
    await this.intake.flow.idle();
    return this.conclude(ending, peer);
  }

  private onAccepted(): void {
    this.sawEvent = this.accepted = true;
    // It was asked to stop while the link was down.
    if (this.stopped) void this.sendAbort(performance.now() + this.deps.timing.abortWaitMs);
  }

  private onChunk(...args: Parameters<Intake["chunk"]>): void | Promise<void> {
    this.sawEvent = this.accepted = true;
    return this.intake.chunk(...args);
  }

  private async conclude(ending: Ending, peer: Peer): Promise<Step> {
    if (ending.kind === "halted") return { result: this.stoppedResult() };
    if (ending.kind === "end") return { result: await this.ended(ending.end, peer) };
    if (ending.kind === "error") {
      const failure = fromExecError(ending.error);
      if (this.stopped && failure.next === "fail") return { result: this.stoppedResult(ending.error.kill) };
      return this.permit(failure, peer);
    }
    // What a base relay does when it has nothing to say about the outcome.
    if (ending.code === status.OK && !peer.extended && !this.stopped) return { result: this.result(null) };
    return this.permit(fromStatus(ending.code, ending.details, this.deps.where), peer);
  }

  /** Passes a failure on when another delivery is allowed, and prepares for that; throws, or ends a stopped exec, otherwise. */
  private permit(failure: Failure, peer: Peer | undefined): Step {
    if (this.stopped && !(this.accepted && failure.next === "redeliver" && peer?.extended !== false)) return { result: this.stoppedResult() };
    const unseen = Boolean(failure.unseen) && this.delivery <= 1;
    if (unseen) {
      this.delivery = 0;
      this.pinned = undefined;
      this.deps.link.forgetPeer();
    }
    if (failure.next === "redeliver" && (this.delivery === 0 || peer?.extended !== false)) return failure;
    if (failure.next === "fail" || failure.next === "redeliver" || !unseen || ++this.freshStarts > MAX_FRESH_STARTS) throw this.failed(failure.error);
    if (failure.next === "renumber") this.reqId = requestIds.next();
    return failure;
  }

  private async ended(end: End, peer: Peer): Promise<ExecResult> {
    if (this.stopped) return this.stoppedResult(end.kill, end);
    const missing = this.intake.finish(end, peer.extended);
    if (missing) throw this.failed(new TransportError("output_lost", missing));
    await this.intake.flow.idle();
    if (this.stopped) return this.stoppedResult(end.kill, end);
    return this.result(end.exitCode < 0 ? null : end.exitCode, end.kill, end.replayed);
  }

  /** The outcome after a stop. A command that ended by itself before its timeout took effect keeps its status. */
  private stoppedResult(kill?: KillReport, end?: End): ExecResult {
    const why = this.stopped as Stop;
    const ended = end && end.exitCode >= 0 ? end : undefined;
    const report = kill
      ?? (this.deliveries === 0 ? neverStarted : undefined)
      ?? (ended ? { found: 0, killed: 0, remaining: 0, verified: true, detail: `it had ended with status ${ended.exitCode}` } : undefined)
      ?? unverified(end ? "the worker does not report what it killed" : `nobody confirmed within ${this.deps.timing.abortWaitMs} ms that the command is gone`);
    if (why.code === "flood") return this.result(ended?.exitCode ?? null, report);
    if (why.code === "timeout" && ended) return this.result(ended.exitCode, report, ended.replayed);
    if (why.code === "listener") throw why.cause;
    throw this.failed(new TransportError(why.code, why.message), report);
  }

  private failed(e: TransportError, kill?: KillReport): TransportError {
    // The worker rounds a fraction up; the caller is told the number it asked for.
    const shown = e.code === "timeout" ? new TransportError(e.code, `timeout:${this.limits.timeout}`, { kill: e.kill }) : e;
    return withIds(shown, { execId: this.execId, deliveries: this.deliveries }, kill);
  }

  private result(exitCode: number | null, kill?: KillReport, replayed?: boolean): ExecResult {
    const { execId, deliveries } = this;
    return makeResult(this.intake.flow.output, exitCode, { kill, replayed, execId, deliveries });
  }

  private message(peer: Peer): Exec {
    const { graceMs } = this.deps.timing;
    const base = { reqId: this.reqId, command: this.command, stdin: this.options.stdin, timeoutS: Math.ceil(this.limits.timeout), streaming: true };
    if (!peer.extended) return Exec.fromPartial(base);
    return Exec.fromPartial({
      ...base,
      ...this.intake.resume,
      execId: this.execId,
      journalId: peer.journalId,
      delivery: this.delivery,
      // One more than is kept: the cap trips only when there is more.
      outputCap: BigInt(this.limits.cap) + 1n,
      graceS: Math.ceil(graceMs / 1000),
      traceparent: this.options.traceparent,
    });
  }

  /** A base relay can leave a call hanging for ever (it loses its error statuses), hence a deadline behind our own timer. */
  private callOptions(peer: Peer): CallOptions {
    const { slackMs, abortWaitMs } = this.deps.timing;
    if (peer.extended || this.limits.timeout === 0) return {};
    return { deadline: Date.now() + this.limits.timeout * 1000 + slackMs + abortWaitMs + 1_000 };
  }

  private async sendAbort(until: number): Promise<void> {
    while (!this.done && performance.now() < until) {
      if (await this.deps.link.abort(this.reqId, this.execId, until - performance.now())) return;
      await delay(ABORT_RETRY_MS, this.halt.signal);
    }
  }
}
