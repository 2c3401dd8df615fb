import { randomUUID } from "node:crypto";
import type { Exec } from "@dialout/proto";
import { delay, type Logger } from "@dialout/common";
import type { Journal } from "../journal/journal";
import type { Launcher } from "../run/launcher";
import type { Metrics } from "../metrics";
import { Audience, type Refuse } from "./audience";
import { Execution, type Request } from "./execution";
import { fingerprint } from "./fingerprint";
import { terminalFrame } from "./frames";
import type { Outbox } from "./outbox";
import { failure, type Stop } from "./outcome";

export interface RegistryOptions {
  capacity: number;
  queueMax: number;
  graceMs: number;
  outputCap: number;
}

/** Ended executions whose output is not all on disk: kept for a grace time so that a reader can resume near the end. */
const RETIRED_MAX = 8;
const EXEC_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** All commands of the worker, by identity. Decides for each delivery: run, join, replay or refuse (docs/protocol.md). */
export class Registry {
  private readonly live = new Map<string, Execution>();
  private readonly queue: Execution[] = [];
  private readonly audience: Audience;
  private running = 0;
  private draining = false;
  private idle: (() => void)[] = [];

  constructor(
    private readonly options: RegistryOptions,
    private readonly launcher: Launcher,
    private readonly journal: Journal,
    private readonly log: Logger,
    private readonly metrics: Metrics,
  ) {
    this.audience = new Audience(journal, {
      unheard: (execution, ms) => this.stop(execution, { why: "unheard", ms }),
      retired: (execution, keepMs) => this.retire(execution, keepMs),
    });
  }

  deliver(exec: Exec, outbox: Outbox): void {
    const base = exec.execId === "";
    const refuse: Refuse = (o) => {
      if (o.kind === "error") this.log.info({ exec_id: exec.execId, req_id: String(exec.reqId), code: o.code }, "exec refused");
      outbox.send(terminalFrame(exec.reqId, o, false, outbox.extended));
    };
    if (!base && !EXEC_ID.test(exec.execId)) return refuse(failure("invalid", "exec_id must be 1 to 64 letters, digits, - or _"));
    if (exec.journalId !== "" && exec.journalId !== this.journal.id) return refuse(failure("journal_mismatch", "journal_mismatch: this worker has another journal; the command was not run"));
    const key = base ? `req:${exec.reqId}` : exec.execId;
    const fp = fingerprint(exec);
    const collision = failure("collision", "req_id collision: a different command is already in flight for this id");
    const other = outbox.find(exec.reqId);
    const execution = this.live.get(key);
    if (other && execution?.delivery?.entry !== other) {
      if (!this.audience.replaysOf(other, key, fp)) return refuse(collision);
      // Its caller came again before the relay noticed that it was gone; the newest delivery gets the replay.
      outbox.remove(other);
    }

    if (execution && execution.state !== "ended") {
      if (execution.request.fp !== fp) return refuse(collision);
      this.metrics.dedup.inc({ answer: "joined" });
      return this.audience.listen(execution, exec, outbox, execution.state === "queued" ? "queued" : "joined", false, refuse);
    }
    const known = this.journal.find(key);
    const afresh = base && known !== undefined && known.fp !== fp;
    if (afresh) this.log.warn({ req_id: String(exec.reqId) }, "req_id was used before for another command; running this one afresh");
    else if (known) {
      if (known.fp !== fp) return refuse(failure("collision", "exec_id collision: another command ran under this id"));
      if (known.state !== "finished" && !execution?.outcome) {
        this.metrics.dedup.inc({ answer: "interrupted" });
        return refuse(failure("interrupted", "interrupted: the worker restarted while this command ran; it is not run again"));
      }
      this.metrics.dedup.inc({ answer: "replayed" });
      if (execution?.outcome) return this.audience.listen(execution, exec, outbox, "replay", true, refuse);
      if (known.state === "finished") return this.audience.replay(known, key, exec, outbox, refuse);
    }
    if (this.draining) return refuse(failure("busy", "busy: the worker is shutting down"));
    if (this.running >= this.options.capacity && this.queue.length >= this.options.queueMax) return refuse(failure("busy", "busy: queue full"));
    this.admit(exec, key, base, fp, outbox, refuse);
  }

  abort(exec: { reqId: bigint; execId: string }, outbox: Outbox): void {
    const execution = exec.execId ? this.live.get(exec.execId) : (this.listening(exec.reqId, outbox) ?? this.live.get(`req:${exec.reqId}`));
    if (!execution || execution.state === "ended") return;
    this.log.info({ exec_id: execution.request.key, req_id: String(exec.reqId) }, "abort");
    if (execution.delivery) execution.delivery.entry.aborted = true;
    this.stop(execution, { why: "abort" });
  }

  credit(reqId: bigint, bytes: bigint, outbox: Outbox): void {
    const d = outbox.find(reqId);
    if (!d) return;
    d.credit += Number(bytes);
    outbox.kick();
  }

  /** The caller's stream is gone; the command goes on for its grace time. */
  detach(reqId: bigint, outbox: Outbox): void {
    const d = outbox.find(reqId);
    if (!d) return;
    this.audience.detach(this.listening(reqId, outbox), d, outbox);
  }

  /** The session of this outbox is over. */
  lost(outbox: Outbox): void {
    outbox.close();
    for (const e of [...this.live.values()]) if (e.delivery?.outbox === outbox) this.audience.leave(e);
  }

  /** Takes nothing new, waits for what runs until the signal, then kills it. Resolves when nothing runs any more. */
  async drain(signal: AbortSignal): Promise<void> {
    this.draining = true;
    const kill = () => {
      for (const e of [...this.live.values()]) if (e.state !== "ended") this.stop(e, { why: "shutdown" });
    };
    for (const e of [...this.queue]) this.stop(e, { why: "shutdown" });
    if (signal.aborted) kill();
    else signal.addEventListener("abort", kill, { once: true });
    if (this.running > 0) await new Promise<void>((r) => this.idle.push(r));
    signal.removeEventListener("abort", kill);
  }

  /** Resolves when every ended command's outcome was handed to its stream, or after `ms`. */
  async delivered(ms: number): Promise<void> {
    const end = performance.now() + ms;
    while (performance.now() < end && [...this.live.values()].some((e) => e.delivery)) await delay(10);
  }

  /** SIGKILL to everything, without waiting. */
  killNow(): void {
    for (const e of this.live.values()) e.killNow();
  }

  private admit(exec: Exec, key: string, base: boolean, fp: string, outbox: Outbox, refuse: Refuse): void {
    const caps = [Number(exec.outputCap), this.options.outputCap].filter((c) => c > 0);
    const request: Request = {
      key, base, fp,
      serial: randomUUID(),
      command: exec.command,
      stdin: exec.stdin,
      timeoutS: exec.timeoutS,
      streaming: exec.streaming,
      cap: caps.length > 0 ? Math.min(...caps) : 0,
      graceMs: exec.graceS > 0 ? Math.min(exec.graceS * 1000, this.options.graceMs) : this.options.graceMs,
      traceparent: TRACEPARENT.test(exec.traceparent) ? exec.traceparent : "",
    };
    const execution = new Execution(request, {
      launcher: this.launcher,
      journal: this.journal,
      log: this.log,
      onKill: (k, why) => {
        this.metrics.killed.inc({ why, verified: String(k.verified) }, k.killed);
        const line = { exec_id: key, req_id: String(exec.reqId), why, ...k };
        if (k.verified) this.log.info(line, "command killed");
        else this.log.warn(line, "command killed, but it is not certain that nothing of it is left");
      },
    });
    this.live.set(key, execution);
    const queued = this.running >= this.options.capacity;
    this.audience.listen(execution, exec, outbox, queued ? "queued" : "running", false, refuse);
    if (queued) this.queue.push(execution);
    else this.run(execution, exec.reqId);
    this.metrics.queued.set(this.queue.length);
  }

  private run(execution: Execution, reqId: bigint): void {
    this.running++;
    this.metrics.running.set(this.running);
    this.log.debug({ exec_id: execution.request.key, req_id: String(reqId), bytes: execution.request.command.length }, "exec started");
    const began = performance.now();
    void execution.run().then((outcome) => {
      this.running--;
      this.metrics.running.set(this.running);
      const ms = Math.round(performance.now() - began);
      const result = outcome.kind === "end" ? (outcome.exitCode < 0 ? "signal" : "exit") : outcome.code;
      this.metrics.seconds.observe({ result }, ms / 1000);
      this.log.info({ exec_id: execution.request.key, req_id: String(reqId), duration_ms: ms, result, exit_code: outcome.kind === "end" ? outcome.exitCode : undefined, trace: execution.request.traceparent || undefined }, "exec ended");
      this.audience.ended(execution, outcome);
      this.next();
    });
  }

  private next(): void {
    while (this.running < this.options.capacity) {
      const execution = this.queue.shift();
      if (!execution) break;
      this.run(execution, execution.delivery?.entry.reqId ?? 0n);
    }
    this.metrics.queued.set(this.queue.length);
    if (this.running === 0) for (const r of this.idle.splice(0)) r();
  }

  private stop(execution: Execution, stop: Stop): void {
    execution.stop(stop);
    const at = this.queue.indexOf(execution);
    if (at < 0) return;
    this.queue.splice(at, 1); // never spawned; run() only settles it
    this.running++;
    void execution.run().then((outcome) => {
      this.running--;
      this.audience.ended(execution, outcome);
      this.next();
    });
  }

  private retire(execution: Execution, keepMs: number): void {
    const drop = () => {
      if (execution.delivery) return;
      execution.stdout.close();
      execution.stderr.close();
      if (this.live.get(execution.request.key) === execution) this.live.delete(execution.request.key);
    };
    const waiting = [...this.live.values()].filter((e) => e.state === "ended" && !e.delivery);
    if (keepMs === 0 || waiting.length > RETIRED_MAX) return drop();
    setTimeout(drop, keepMs).unref();
  }

  private listening(reqId: bigint, outbox: Outbox): Execution | undefined {
    const entry = outbox.find(reqId);
    return entry && [...this.live.values()].find((e) => e.delivery?.entry === entry);
  }
}
