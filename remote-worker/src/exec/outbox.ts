import type { WorkerFrame } from "@dialout/proto";
import { chunkFrame, terminalFrame, type StreamName } from "./frames";
import type { Readable } from "./outputLog";
import type { Outcome } from "./outcome";

const CHUNK = 32 * 1024;
/** Less than this waits for company, unless nothing was sent lately. */
const SMALL = 4 * 1024;
const COALESCE_MS = 5;
/** Frames in one go before other work of the process gets a turn. */
const BURST = 64;

export const TRUNCATED = Buffer.from("\n[output truncated]");

/** What one request on one session is to be sent, and how far that got. */
export interface Delivery {
  readonly reqId: bigint;
  readonly sources: Record<StreamName, Readable>;
  readonly sent: Record<StreamName, number>;
  /** Chunk bytes that may still be sent; Infinity without flow control. */
  credit: number;
  /** Nothing is sent before the outcome is known (`streaming=false`). */
  readonly held: boolean;
  readonly replayed: boolean;
  /** The caller knows no truncation fields and gets the marker as text. */
  readonly textMarker: boolean;
  outcome: Outcome | undefined;
  /** The caller aborted: output that it grants no credit for is left out rather than waited for. */
  aborted?: boolean;
  lastSentMs: number;
  /** After each chunk: the source may go on reading from the command. */
  onSent?: () => void;
  /** The terminal frame was handed to the stream. */
  onDone?: () => void;
  /** Nothing more will be read from the sources for it, however that came. */
  release?: () => void;
}

export interface Sink {
  readonly extended: boolean;
  /** False = the stream is full; `Outbox.kick` is called when it is not any more. */
  send(frame: WorkerFrame): boolean;
}

/** Sends the output of all commands of one session: in turns, within each one's credit, and no faster than the stream takes it. */
export class Outbox {
  private readonly deliveries = new Map<bigint, Delivery>();
  private blocked = false;
  private scheduled = false;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(
    private readonly sink: Sink,
    private readonly now: () => number = () => performance.now(),
    private readonly counted: (stream: StreamName, bytes: number) => void = () => undefined,
  ) {}

  get extended(): boolean {
    return this.sink.extended;
  }

  find(reqId: bigint): Delivery | undefined {
    return this.deliveries.get(reqId);
  }

  all(): Delivery[] {
    return [...this.deliveries.values()];
  }

  add(d: Delivery): void {
    this.deliveries.set(d.reqId, d);
    this.kick();
  }

  remove(d: Delivery): void {
    if (this.deliveries.get(d.reqId) === d) this.deliveries.delete(d.reqId);
    d.release?.();
  }

  /** Ends a delivery whose caller is gone: its output is left out, its end is told if there is one. */
  drop(d: Delivery): void {
    this.remove(d);
    if (d.outcome) this.send(terminalFrame(d.reqId, d.outcome, d.replayed, this.extended));
  }

  send(frame: WorkerFrame): void {
    if (!this.closed && !this.sink.send(frame)) this.blocked = true;
  }

  drained(): void {
    this.blocked = false;
    this.kick();
  }

  /** How many requests it still has to answer. */
  get size(): number {
    return this.deliveries.size;
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    for (const d of this.deliveries.values()) d.release?.();
    this.deliveries.clear();
  }

  /** Something changed: output, credit, an outcome. Sending happens in the next turn, so that what comes together goes together. */
  kick(): void {
    if (this.scheduled || this.closed) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.pump();
    });
  }

  private pump(): void {
    let budget = BURST;
    let wait: number | undefined;
    for (let progress = true; progress && !this.blocked && !this.closed; ) {
      progress = false;
      for (const d of this.deliveries.values()) {
        if (this.blocked || this.closed) return;
        const step = this.step(d);
        if (step === "sent") {
          progress = true;
          if (--budget <= 0) return this.kick();
        } else if (typeof step === "number") wait = Math.min(wait ?? step, step);
      }
    }
    if (wait !== undefined) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.kick(), wait);
    }
  }

  /** Sends one frame of a delivery. Returns how long to wait when there is a little output that may grow. */
  private step(d: Delivery): "sent" | "idle" | number {
    if (d.held && !d.outcome) return "idle";
    for (const stream of ["stdout", "stderr"] as const) {
      const available = d.sources[stream].produced - d.sent[stream];
      if (available <= 0) continue;
      if (d.credit <= 0) return d.aborted && d.outcome ? this.cutShort(d, d.outcome) : "idle";
      if (!d.outcome && available < SMALL) {
        const ripe = d.lastSentMs + COALESCE_MS - this.now();
        if (ripe > 0) return Math.ceil(ripe);
      }
      const data = d.sources[stream].read(d.sent[stream], Math.min(CHUNK, d.credit));
      if (!data || data.length === 0) {
        this.finish(d, { kind: "error", code: "output_lost", message: `output_lost: ${stream} from byte ${d.sent[stream]} is no longer held` });
        return "sent";
      }
      this.send(chunkFrame(d.reqId, stream, data, d.sent[stream], this.extended));
      d.sent[stream] += data.length;
      d.credit -= data.length;
      d.lastSentMs = this.now();
      this.counted(stream, data.length);
      d.onSent?.();
      return "sent";
    }
    if (!d.outcome) return "idle";
    if (d.textMarker && d.outcome.kind === "end") {
      if (d.outcome.stdoutTruncated) this.send(chunkFrame(d.reqId, "stdout", TRUNCATED, d.sent.stdout, this.extended));
      if (d.outcome.stderrTruncated) this.send(chunkFrame(d.reqId, "stderr", TRUNCATED, d.sent.stderr, this.extended));
    }
    this.finish(d, d.outcome);
    return "sent";
  }

  private cutShort(d: Delivery, o: Outcome): "sent" {
    const less = (s: StreamName) => d.sent[s] < d.sources[s].produced;
    this.finish(d, o.kind === "end" ? { ...o, stdoutTruncated: o.stdoutTruncated || less("stdout"), stderrTruncated: o.stderrTruncated || less("stderr") } : o);
    return "sent";
  }

  private finish(d: Delivery, outcome: Outcome): void {
    this.remove(d);
    this.send(terminalFrame(d.reqId, outcome, d.replayed, this.extended));
    d.onDone?.();
  }
}
