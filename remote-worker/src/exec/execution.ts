import path from "node:path";
import { delay, type Logger } from "@dialout/common";
import type { Journal } from "../journal/journal";
import type { StoredStream } from "../journal/records";
import type { KillResult } from "../kill/hunt";
import type { Launcher, RunningCommand } from "../run/launcher";
import type { StreamName } from "./frames";
import type { Delivery, Outbox } from "./outbox";
import { OutputLog } from "./outputLog";
import { cachedForBase, failure, outcomeOf, type Outcome, type Stop } from "./outcome";

export const SPOOL_BYTES = 8 << 20;
const RING_BYTES = 1 << 20;
/** Output up to this size stands in the journal's own record. */
const INLINE_BYTES = 4 << 10;
/** After the leader's end: how long silent pipes stay open, and how long talking ones do. */
const SILENCE_MS = 2_000;
const DRAIN_CEILING_MS = 30_000;
const OBSERVE_MS = 500;
const MAX_TIMER_MS = 2_000_000_000;

export interface Request {
  /** `exec_id`, or `req:<n>` of a base caller. */
  key: string;
  /** Names the files of this execution; unlike `key` never reused. */
  serial: string;
  base: boolean;
  fp: string;
  command: string;
  stdin: Uint8Array;
  timeoutS: number;
  streaming: boolean;
  cap: number;
  graceMs: number;
  traceparent: string;
}

export interface ExecutionDeps {
  launcher: Launcher;
  journal: Journal;
  log: Logger;
  onKill: (k: KillResult, why: string) => void;
}

/** One command from its arrival to its outcome. It does not care who listens, nor whether anyone does. */
export class Execution {
  readonly stdout: OutputLog;
  readonly stderr: OutputLog;
  readonly sent: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  state: "queued" | "running" | "ended" = "queued";
  outcome: Outcome | undefined;
  delivery: { outbox: Outbox; entry: Delivery } | undefined;
  /** Where the journal holds the whole output, so that this object need not be kept for a replay. */
  outputStored = false;
  private command: RunningCommand | undefined;
  private stopped: Stop | undefined;
  private readonly wake: Promise<void>;
  private wakeUp: () => void = () => undefined;
  private startedMs = 0;
  private lastDataMs = 0;

  constructor(
    readonly request: Request,
    private readonly deps: ExecutionDeps,
  ) {
    const cap = request.cap > 0 ? request.cap : Infinity;
    const limits = { spool: SPOOL_BYTES, ring: RING_BYTES, cap: request.streaming ? cap : Math.min(cap, SPOOL_BYTES) };
    const file = (s: StreamName) => path.join(deps.journal.outputDir, `${request.serial}.${s}`);
    this.stdout = new OutputLog(file("stdout"), limits, INLINE_BYTES);
    this.stderr = new OutputLog(file("stderr"), limits, INLINE_BYTES);
    this.wake = new Promise((r) => (this.wakeUp = r));
  }

  /** Ends the command, or keeps it from starting. The first reason counts. */
  stop(stop: Stop): void {
    this.stopped ??= stop;
    this.wakeUp();
  }

  /** SIGKILL without waiting, for the worker's last moment. */
  killNow(): void {
    this.command?.killNow();
  }

  /** A reader took bytes (or another reader came): go on reading from the command if there is room. */
  resume(): void {
    for (const s of ["stdout", "stderr"] as const) {
      const pipe = this.command?.[s];
      if (pipe?.isPaused() && this[s].wants(this.sent[s])) pipe.resume();
    }
  }

  /** Runs the command; resolves when the outcome is known and journalled, never rejects. */
  async run(): Promise<Outcome> {
    let outcome: Outcome;
    try {
      outcome = this.stopped ? this.neverStarted() : await this.attempt();
    } catch (e) {
      this.deps.log.error({ err: e, exec_id: this.request.key }, "a command failed inside the worker");
      outcome = failure("spawn", `start bash: ${(e as Error).message}`);
    }
    this.state = "ended";
    this.record(outcome);
    this.outcome = outcome;
    return outcome;
  }

  private async attempt(): Promise<Outcome> {
    const { request, deps } = this;
    this.state = "running";
    if (request.command.includes("\0")) return failure("spawn", "start bash: the command contains a NUL byte");
    let place;
    try {
      place = await deps.launcher.prepare(request.stdin.length > 0 ? request.stdin : undefined);
      request.stdin = Buffer.alloc(0); // up to 16 MiB that nobody needs any more
    } catch (e) {
      const full = (e as NodeJS.ErrnoException).code === "ENOSPC";
      return full ? failure("resource_exhausted", "stdin pipe: no space left in the worker's state folder; the command was not started") : failure("spawn", `start bash: ${(e as Error).message}`);
    }
    try {
      await deps.journal.started({ t: "started", key: request.key, fp: request.fp, marks: place.marks });
    } catch (e) {
      place.discard();
      return failure("resource_exhausted", `journal: ${(e as NodeJS.ErrnoException).code ?? (e as Error).message} in ${deps.journal.dir}; the command was not started`);
    }
    if (this.stopped) {
      place.discard();
      return this.neverStarted();
    }
    this.startedMs = performance.now();
    const command = place.start({ command: request.command, traceparent: request.traceparent });
    this.command = command;
    const timer = request.timeoutS > 0 ? setTimeout(() => this.stop({ why: "timeout", seconds: request.timeoutS }), Math.min(request.timeoutS * 1000, MAX_TIMER_MS)) : undefined;
    const observer = setInterval(() => command.observe(), OBSERVE_MS);
    try {
      return await this.follow(command);
    } finally {
      clearTimeout(timer);
      clearInterval(observer);
    }
  }

  private async follow(command: RunningCommand): Promise<Outcome> {
    const closed = Promise.all([this.collect("stdout", command), this.collect("stderr", command)]).then(() => true as const);
    let exit = await Promise.race([command.exited, this.wake.then(() => undefined)]);
    let kill: KillResult | undefined;
    if (exit) await this.drain(closed, command);
    if (this.stopped) {
      kill = await command.kill();
      exit ??= await Promise.race([command.exited, delay(SILENCE_MS).then(() => undefined)]);
    } else kill = await command.settle();
    if (kill) this.deps.onKill(kill, this.stopped?.why ?? "leftovers");
    // What is in the pipes is the command's output still; with all writers gone they end at once.
    if (!this.stopped) await this.emptied(closed, command, 250);
    else await Promise.race([closed, delay(250)]);
    command.stdout.destroy();
    command.stderr.destroy();
    await closed;
    return outcomeOf(exit, this.stopped, {
      stdoutBytes: this.stdout.total,
      stderrBytes: this.stderr.total,
      stdoutTruncated: this.stdout.truncated,
      stderrTruncated: this.stderr.truncated,
      durationMs: performance.now() - this.startedMs,
      kill,
    });
  }

  private collect(stream: StreamName, command: RunningCommand): Promise<void> {
    const pipe = command[stream];
    const log = this[stream];
    pipe.deliver((data) => {
      this.lastDataMs = performance.now();
      log.append(data, this.sent[stream]);
      this.delivery?.outbox.kick();
      if (!log.wants(this.sent[stream])) pipe.pause();
    });
    return new Promise((resolve) => pipe.once("close", () => resolve()));
  }

  /** After the leader's end: until both pipes end, or a process that holds them has been silent, or talks for too long. */
  private async drain(closed: Promise<true>, command: RunningCommand): Promise<void> {
    let talking = performance.now();
    this.lastDataMs = talking;
    for (;;) {
      const done = await Promise.race([closed, this.wake, delay(50)]);
      const now = performance.now();
      if (done === true || this.stopped) return;
      if (command.stdout.isPaused() || command.stderr.isPaused()) this.lastDataMs = talking = now; // the reader is slow, not the command
      else if (now - this.lastDataMs > SILENCE_MS || now - talking > DRAIN_CEILING_MS) return;
    }
  }

  /** Like drain, for pipes whose writers are gone: only a slow reader may hold them up. */
  private async emptied(closed: Promise<true>, command: RunningCommand, silenceMs: number): Promise<void> {
    for (let quiet = performance.now(); performance.now() - quiet < silenceMs && !this.stopped; ) {
      if ((await Promise.race([closed, this.wake, delay(25)])) === true) return;
      if (command.stdout.isPaused() || command.stderr.isPaused()) quiet = performance.now();
    }
  }

  private neverStarted(): Outcome {
    return outcomeOf(undefined, this.stopped, {
      stdoutBytes: 0, stderrBytes: 0, stdoutTruncated: false, stderrTruncated: false, durationMs: 0,
      kill: { found: 0, killed: 0, remaining: 0, verified: true, detail: "never started" },
    });
  }

  private record(outcome: Outcome): void {
    const { journal, log } = this.deps;
    const { key, fp, base } = this.request;
    try {
      if (outcome.kind === "error" && ["spawn", "resource_exhausted"].includes(outcome.code) && this.startedMs === 0) journal.forget(key);
      else if (base && !cachedForBase(outcome)) journal.forget(key);
      else {
        const stdout = stored(this.stdout);
        const stderr = stored(this.stderr);
        journal.finished({ t: "finished", key, fp, outcome, stdout, stderr });
        this.outputStored = [stdout, stderr].every((s) => s.bytes === 0 || s.base64 !== undefined || s.file !== undefined);
      }
    } catch (e) {
      log.warn({ err: e, exec_id: key }, "the outcome could not be journalled: after a restart of the worker this command will count as interrupted");
    }
    for (const s of [this.stdout, this.stderr]) {
      if (s.failure) log.warn({ err: s.failure, exec_id: key }, "output could not be kept on disk: it cannot be replayed from its start");
    }
  }
}

function stored(log: OutputLog): StoredStream {
  if (log.produced === 0) return { bytes: 0 };
  const whole = log.seal();
  if (!whole) return { bytes: log.produced };
  return "file" in whole ? { bytes: log.produced, file: path.basename(whole.file) } : { bytes: log.produced, base64: whole.bytes.toString("base64") };
}
