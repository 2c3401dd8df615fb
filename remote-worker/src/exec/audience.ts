import path from "node:path";
import type { Exec } from "@dialout/proto";
import type { Finished, Journal } from "../journal/journal";
import type { StoredStream } from "../journal/records";
import { delivery } from "./delivery";
import type { Execution } from "./execution";
import { acceptedFrame, terminalFrame } from "./frames";
import type { Delivery, Outbox } from "./outbox";
import { failure, type Outcome } from "./outcome";
import { StoredOutput } from "./outputLog";

export type Refuse = (outcome: Outcome) => void;

export interface AudienceEvents {
  /** Nobody came to listen for the grace time. */
  unheard(execution: Execution, ms: number): void;
  /** It has ended and was told; `keepMs` = how long a reader may still want to resume near its end. */
  retired(execution: Execution, keepMs: number): void;
}

const outputLost = failure("output_lost", "output_lost: the output at the asked offset is no longer held");

/** Who listens to which command, and what happens when nobody does (docs/protocol.md). */
export class Audience {
  private readonly waiting = new Map<Execution, NodeJS.Timeout>();
  /** Where the end of a command is still to be told that nobody listens to: the relay keeps the exec until it knows. */
  private readonly detached = new Map<Execution, { outbox: Outbox; reqId: bigint }>();
  /** What the replays that are being sent belong to: identity and fingerprint. */
  private readonly replays = new WeakMap<Delivery, string>();

  constructor(
    private readonly journal: Journal,
    private readonly events: AudienceEvents,
  ) {}

  /** Makes this request the one that gets the output; an earlier one gets nothing more. */
  listen(execution: Execution, exec: Exec, outbox: Outbox, state: string, replayed: boolean, refuse: Refuse): void {
    const sent = { stdout: Number(exec.resumeStdout), stderr: Number(exec.resumeStderr) };
    if (!execution.stdout.holds(sent.stdout) || !execution.stderr.holds(sent.stderr)) return refuse(outputLost);
    if (execution.delivery) execution.delivery.outbox.remove(execution.delivery.entry);
    this.heard(execution);
    this.detached.delete(execution);
    const entry = delivery(exec, { stdout: execution.stdout, stderr: execution.stderr }, sent, execution.outcome, replayed);
    Object.assign(execution.sent, sent);
    entry.onSent = () => {
      Object.assign(execution.sent, entry.sent);
      execution.resume();
    };
    entry.onDone = () => {
      if (execution.delivery?.entry === entry) this.leave(execution);
    };
    execution.delivery = { outbox, entry };
    this.announce(exec, outbox, state);
    outbox.add(entry);
    execution.resume();
  }

  /** Sends a finished command's output and outcome from the journal. */
  replay(known: Finished, key: string, exec: Exec, outbox: Outbox, refuse: Refuse): void {
    const stdout = this.stored(known.stdout);
    const stderr = this.stored(known.stderr);
    const close = () => {
      stdout.close();
      stderr.close();
    };
    const sent = { stdout: Number(exec.resumeStdout), stderr: Number(exec.resumeStderr) };
    if (!stdout.holds(sent.stdout) || !stderr.holds(sent.stderr)) {
      close();
      return refuse(outputLost);
    }
    const entry = delivery(exec, { stdout, stderr }, sent, known.outcome, true);
    entry.release = close;
    this.replays.set(entry, `${key} ${known.fp}`);
    this.announce(exec, outbox, "replay");
    outbox.add(entry);
  }

  /** Whether `entry` is a replay of this very command. */
  replaysOf(entry: Delivery, key: string, fp: string): boolean {
    return this.replays.get(entry) === `${key} ${fp}`;
  }

  /** The caller's stream is gone and it means to come back; the command goes on for its grace time. */
  detach(execution: Execution | undefined, entry: Delivery, outbox: Outbox): void {
    outbox.drop(entry);
    if (!execution) return;
    if (!entry.outcome) this.detached.set(execution, { outbox, reqId: entry.reqId });
    this.leave(execution);
  }

  /** Nobody listens any more: the command is retired, or goes on for its grace time. */
  leave(execution: Execution): void {
    execution.delivery = undefined;
    if (execution.state === "ended") return this.retire(execution);
    const ms = execution.request.graceMs;
    this.heard(execution);
    this.waiting.set(execution, setTimeout(() => this.events.unheard(execution, ms), ms));
  }

  /** The command has ended: whoever listens is told, or who must know that it is over. */
  ended(execution: Execution, outcome: Outcome): void {
    this.heard(execution);
    const left = this.detached.get(execution);
    this.detached.delete(execution);
    if (execution.delivery) {
      execution.delivery.entry.outcome = outcome;
      execution.delivery.outbox.kick();
      return;
    }
    left?.outbox.send(terminalFrame(left.reqId, outcome, false, left.outbox.extended));
    this.retire(execution);
  }

  private retire(execution: Execution): void {
    this.events.retired(execution, execution.outputStored || execution.outcome?.kind === "error" ? 0 : execution.request.graceMs);
  }

  private heard(execution: Execution): void {
    clearTimeout(this.waiting.get(execution));
    this.waiting.delete(execution);
  }

  private announce(exec: Exec, outbox: Outbox, state: string): void {
    if (outbox.extended) outbox.send(acceptedFrame(exec.reqId, state));
  }

  private stored(s: StoredStream): StoredOutput {
    const source = s.file !== undefined ? { file: path.join(this.journal.outputDir, s.file) } : s.base64 !== undefined ? { bytes: Buffer.from(s.base64, "base64") } : undefined;
    return new StoredOutput(source, s.bytes);
  }
}
