import { randomUUID } from "node:crypto";
import { Backoff, delay, type Logger } from "@dialout/common";
import type { Envelope } from "../envelope";
import type { Services } from "../services";
import { insist } from "../store/redis";
import { SessionLog } from "../store/session-log";
import { LeafFailure, type LeafResult } from "./result";
import { runLeaf } from "./run";
import { sessionKey } from "./session-id";
import { traceOf } from "./trace";

/** The leaf was not begun; the caller may ask again later. */
export class Refused extends Error {
  override readonly name = "Refused";

  constructor(readonly kind: "saturated" | "running_elsewhere", message: string) {
    super(message);
  }
}

export interface Job {
  sid: string;
  /** Resolves once the leaf is surely going to run; rejects with Refused or StoreError when it is not. */
  accepted: Promise<void>;
  result: Promise<LeafResult>;
}

/** How long leaves that were told to stop may take to give back what they hold: a kill that reaches into a pod waits up to 10 s. */
const RELEASE_MS = 20_000;

/** The leaves of this process. A session runs at most once at a time, in this process and (by a lease) in all of them. */
export class LeafRunner {
  private readonly jobs = new Map<string, Job>();
  private readonly stop = new AbortController();
  private draining = false;

  constructor(private readonly services: Services) {}

  get size(): number {
    return this.jobs.size;
  }

  runs(sid: string): boolean {
    return this.jobs.has(sid);
  }

  /** Starts a leaf, or joins the one the session is running. A leaf goes on when its caller hangs up: the result is stored. */
  submit(envelope: Envelope, traceparent: string | undefined): Job {
    const sid = sessionKey(envelope.sessionId, envelope.tenant);
    const known = this.jobs.get(sid);
    if (known) return known;
    if (this.draining) throw new Refused("saturated", "the harness is shutting down");
    if (this.jobs.size >= this.services.settings.maxLeaves) throw new Refused("saturated", `${this.jobs.size} leaves are running here, the most HARNESS_MAX_LEAVES allows`);
    let accept!: () => void;
    let refuse!: (e: unknown) => void;
    const accepted = new Promise<void>((resolve, reject) => ([accept, refuse] = [resolve, reject]));
    const trace = traceOf(traceparent);
    const log = this.services.log.child({ session: sid, trace_id: trace.traceId });
    const result = this.run(sid, envelope, trace, log, accept).finally(() => {
      this.jobs.delete(sid);
      this.services.metrics.inFlight(this.jobs.size);
    });
    result.catch(refuse);
    accepted.catch(() => undefined);
    const job = { sid, accepted, result };
    this.jobs.set(sid, job);
    this.services.metrics.inFlight(this.jobs.size);
    return job;
  }

  private async run(sid: string, envelope: Envelope, trace: ReturnType<typeof traceOf>, log: Logger, accept: () => void): Promise<LeafResult> {
    const { leases, store, settings, metrics } = this.services;
    const lock = await leases.acquire(`leaf:run:${sid}`, 1, randomUUID());
    if (!lock) throw new Refused("running_elsewhere", `session ${sid} is running in another process. Ask GET /runs/status, or try again later`);
    try {
      if (envelope.async) await new SessionLog(store, sid, settings.sessionTtlS).append({ type: "accepted", kind: envelope.kind });
      accept();
      const result = await this.untilPlaced(() => runLeaf(this.services, { sid, envelope, trace, signal: this.stop.signal, log }));
      metrics.leafEnded(result);
      log.info({ status: result.status, reason: result.status === "failed" ? result.reason : undefined, verdict: result.status === "done" ? result.verdict.verdict : undefined, ms: result.elapsedMs }, "leaf ended");
      const saturated = result.status === "failed" && result.reason === "saturated";
      if (!saturated || envelope.async) await this.keep(sid, result, log);
      return result;
    } finally {
      await lock.release();
    }
  }

  /** Runs again while the pool is full, for as long as the settings say. */
  private async untilPlaced(attempt: () => Promise<LeafResult>): Promise<LeafResult> {
    const { waitMs, backoffMs, maxBackoffMs } = this.services.settings.saturation;
    const backoff = new Backoff(backoffMs, maxBackoffMs);
    const end = Date.now() + waitMs;
    for (;;) {
      const result = await attempt();
      const left = end - Date.now();
      if (result.status !== "failed" || result.reason !== "saturated" || left <= 0 || this.stop.signal.aborted) return result;
      await delay(Math.min(backoff.next(), left), this.stop.signal);
    }
  }

  private async keep(sid: string, result: LeafResult, log: Logger): Promise<void> {
    const lesser = result.replayed === true || (result.status === "failed" && result.reason === "bad_inputs");
    await insist(() => this.services.results.put(sid, result, lesser)).catch((e: Error) => {
      log.error({ cause: e.message }, "result not stored; only the caller who waits for it gets it");
    });
  }

  /** Takes no new leaf, lets the running ones end until `signal`, then stops them and waits until they let go. */
  async drain(signal: AbortSignal): Promise<void> {
    this.draining = true;
    const all = Promise.allSettled([...this.jobs.values()].map((j) => j.result));
    const bound = new Promise<void>((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve(), { once: true })));
    await Promise.race([all, bound]);
    if (!this.jobs.size) return;
    this.services.log.warn({ leaves: [...this.jobs.keys()] }, "stopping the leaves that are left");
    this.stop.abort(new LeafFailure("error", "the harness was shut down before the leaf ended; send the request again"));
    await Promise.race([all, delay(RELEASE_MS)]);
  }
}
