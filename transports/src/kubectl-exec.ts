import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { neverStarted, TransportError, unverified } from "./errors";
import { Flow } from "./flow";
import { kubectlFailure, wasRefused } from "./kubectl-failure";
import { Noise, parseKill, parseStatus, Splitter } from "./kubectl-frames";
import { frames, killerScript, wrapperScript } from "./kubectl-script";
import { endGroup, runInPod, startKubectl, type KubectlOptions } from "./kubectl-target";
import type { Limits } from "./options";
import { makeResult, STOP_ABORTED, stopTimeout, Timers, withIds, type Stop } from "./outcome";
import type { ExecOptions, ExecResult, KillReport, StreamName } from "./types";

/** All in milliseconds. */
export interface KubectlTiming {
  /** Room that our own timer leaves the pod's to report first: starting kubectl takes its time. */
  slackMs: number;
  /** How long killing a command in the pod may take to be confirmed. */
  abortWaitMs: number;
  /** A command that goes on past its output cap is killed after this time. */
  floodMs: number;
}

type Ending = { exitCode: number; late: KillReport | undefined } | { exit: string };

/** Linux takes no longer single argument (MAX_ARG_STRLEN). */
const MAX_SCRIPT = 128 * 1024 - 1;
/** What kubectl gets to leave by itself once the command's outcome is known. */
const LINGER_MS = 2_000;

/** One command in a pod. Use once. */
export class KubectlExec {
  readonly execId = randomUUID();
  private readonly nonce = randomBytes(16).toString("hex");
  private readonly flow: Flow;
  private readonly noise = new Noise();
  private readonly timers = new Timers();
  private readonly begun = performance.now();
  private child: ChildProcessWithoutNullStreams | undefined;
  private started = false;
  private stopped: Stop | undefined;
  private onStop: (why: Stop) => void = () => undefined;

  constructor(private readonly target: KubectlOptions, private readonly timing: KubectlTiming, private readonly command: string, private readonly options: ExecOptions, private readonly limits: Limits) {
    this.flow = new Flow(limits.cap, options.onData, {
      flooded: () => this.timers.after(timing.floodMs, () => this.stop({ code: "flood" })),
      listenerFailed: (cause) => this.stop({ code: "listener", cause }),
    });
  }

  async run(): Promise<ExecResult> {
    const { signal, stdin } = this.options;
    const { timeout } = this.limits;
    const script = wrapperScript({ command: this.command, mark: this.execId, nonce: this.nonce, timeoutS: Math.ceil(timeout) });
    const size = Buffer.byteLength(script);
    if (size > MAX_SCRIPT) throw new TransportError("invalid", `command is too long for one argument (${size} bytes with its wrapper, at most ${MAX_SCRIPT}): put the data on stdin`);
    const onAbort = () => this.stop(STOP_ABORTED);
    const stopping = new Promise<Stop>((resolve) => (this.onStop = resolve));
    this.child = startKubectl(this.target, script);
    signal?.addEventListener("abort", onAbort, { once: true });
    if (timeout > 0) this.timers.after(timeout * 1000 + this.timing.slackMs, () => this.stop(stopTimeout(timeout)));
    try {
      const ending = this.listen(this.child);
      this.child.stdin.end(stdin);
      const first = await Promise.race([ending, stopping]);
      if ("code" in first) return await this.afterStop(first, ending);
      await Promise.race([this.flow.idle(), stopping]);
      if (this.stopped) return await this.afterStop(this.stopped, ending);
      return await this.conclude(first);
    } finally {
      signal?.removeEventListener("abort", onAbort);
      this.timers.clear();
    }
  }

  /** Has the command killed in the pod. Only the first reason counts. */
  stop(why: Stop): void {
    if (this.stopped) return;
    this.stopped = why;
    this.flow.mute();
    this.onStop(why);
  }

  /** Resolves with the command's status, or with how kubectl ended without one. Rejects with node's spawn error. */
  private listen(child: ChildProcessWithoutNullStreams): Promise<Ending> {
    const f = frames(this.nonce);
    const out = (stream: StreamName) => (data: Buffer) => {
      const held = this.flow.add(data, stream);
      if (!held) return;
      child.stdout.pause();
      child.stderr.pause();
      void held.then(() => (child.stdout.resume(), child.stderr.resume()));
    };
    return new Promise((resolve, reject) => {
      let status = "";
      const settle = () => {
        const parsed = stdoutEnd.found ? parseStatus(status) : undefined;
        if (!parsed) return;
        resolve(parsed);
        const linger = setTimeout(() => endGroup(child), LINGER_MS);
        child.once("close", () => clearTimeout(linger));
      };
      const stdoutEnd = new Splitter(Buffer.from(f.stdoutEnd), out("stdout"), () => undefined);
      // Before the start frame and behind the status line it is kubectl that talks.
      const statusLine = new Splitter(Buffer.from(f.status), out("stderr"), (data) => {
        if (status.length < 200) status += data.toString("latin1");
        else this.noise.add(data);
      });
      const start = new Splitter(Buffer.from(f.start), (data) => this.noise.add(data), (data) => statusLine.push(data));
      child.stdout.on("data", (data: Buffer) => (stdoutEnd.push(data), settle()));
      child.stderr.on("data", (data: Buffer) => {
        start.push(data);
        this.started ||= start.found;
        settle();
      });
      child.once("error", reject);
      child.once("close", (code, signal) => {
        for (const splitter of [start, statusLine, stdoutEnd]) splitter.flush();
        resolve({ exit: signal ? `ended by ${signal}` : `exit code ${code}` });
      });
    });
  }

  private async conclude(ending: Ending): Promise<ExecResult> {
    if ("exit" in ending) {
      const noise = this.noise.toString();
      // Unless the API server said no, the command may have begun and may still be there.
      const kill = this.started || !wasRefused(noise) ? await this.kill() : neverStarted;
      throw this.failed(kubectlFailure(this.target, noise, ending.exit, this.started), kill);
    }
    const { exitCode, late } = ending;
    if (late?.found) throw this.failed(new TransportError("timeout", `timeout:${this.limits.timeout}`), late);
    return this.result(exitCode);
  }

  private async afterStop(why: Stop, ending: Promise<Ending>): Promise<ExecResult> {
    const child = this.child as ChildProcessWithoutNullStreams;
    child.stdout.resume();
    child.stderr.resume();
    const kill = await this.killOnceStarted(ending);
    endGroup(child);
    if (why.code === "flood") return this.result(null, kill);
    if (why.code === "listener") throw why.cause;
    throw this.failed(new TransportError(why.code, why.message), kill);
  }

  /** A kill that came before the command would find nothing, and the command would run afterwards: waits for its start, bounded. */
  private async killOnceStarted(ending: Promise<Ending>): Promise<KillReport> {
    const until = performance.now() + this.timing.abortWaitMs;
    let ended: Ending | undefined;
    const settled = ending.then((e) => (ended = e), () => (ended = { exit: "not started" }));
    while (!this.started && !ended && performance.now() < until) await Promise.race([settled, new Promise((r) => this.timers.after(50, () => r(undefined)))]);
    if (!this.started && ended) return neverStarted;
    if (!this.started) return unverified(`the command had not started ${this.timing.abortWaitMs} ms after it was stopped`);
    return this.kill(Math.max(1_000, until - performance.now()));
  }

  private async kill(ms = this.timing.abortWaitMs): Promise<KillReport> {
    const age = (performance.now() - this.begun) / 1000;
    const { stdout, noise } = await runInPod(this.target, killerScript(this.execId, this.nonce, age), ms);
    const frame = frames(this.nonce).status.trim();
    const at = stdout?.indexOf(frame) ?? -1;
    return (at >= 0 && parseKill((stdout as string).slice(at + frame.length))) || unverified(noise || "the pod did not say what it killed");
  }

  private failed(e: TransportError, kill?: KillReport): TransportError {
    return withIds(e, { execId: this.execId, deliveries: 1 }, kill);
  }

  private result(exitCode: number | null, kill?: KillReport): ExecResult {
    return makeResult(this.flow.output, exitCode, { kill, execId: this.execId, deliveries: 1 });
  }
}
