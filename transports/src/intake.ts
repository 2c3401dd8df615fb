import { Stream, type Chunk, type End } from "@dialout/proto";
import { Output } from "./output";
import type { ExecOptions, StreamName } from "./types";

export interface IntakeEvents {
  /** More output came than the cap allows. Told once. */
  flooded(): void;
  /** Bytes in the middle are missing. */
  lost(message: string): void;
  listenerFailed(cause: unknown): void;
}

/** Takes a command's chunks over any number of deliveries: each byte counts once, in order, and the listener sets the pace. */
export class Intake {
  readonly output: Output;
  private readonly received: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  private readonly muted = new AbortController();
  private readonly unmutedUntil: Promise<void>;
  private pending: Promise<void> | undefined;
  private flooded = false;

  constructor(cap: number, onData: ExecOptions["onData"], private readonly events: IntakeEvents) {
    this.output = new Output(cap, onData && ((c, s) => (this.muted.signal.aborted ? undefined : onData(c, s))));
    this.unmutedUntil = new Promise((resolve) => this.muted.signal.addEventListener("abort", () => resolve(), { once: true }));
  }

  /** Tells the listener nothing more, and waits for it no longer. */
  mute(): void {
    this.muted.abort();
  }

  /** Where output has to continue from. */
  get resume(): { resumeStdout: bigint; resumeStderr: bigint } {
    return { resumeStdout: BigInt(this.received.stdout), resumeStderr: BigInt(this.received.stderr) };
  }

  /** `offsets` false: a base peer, whose chunks are simply in order. Returns a promise, never rejecting, to be held back by. */
  chunk(chunk: Chunk, offsets: boolean): void | Promise<void> {
    const stream: StreamName = chunk.stream === Stream.STREAM_STDERR ? "stderr" : "stdout";
    const have = this.received[stream];
    const at = offsets ? Number(chunk.offset) : have;
    if (at > have) return this.events.lost(`output_lost: ${stream} continues at byte ${at} but only ${have} arrived`);
    const fresh = chunk.data.subarray(have - at);
    if (!fresh.length) return undefined;
    this.received[stream] += fresh.length;
    const held = this.guard(() => this.output.add(fresh, stream));
    if (this.output.truncated && !this.flooded) {
      this.flooded = true;
      this.events.flooded();
    }
    return held;
  }

  /** Applies what the terminal event says about the streams. Returns what is missing, if anything. */
  finish(end: End, offsets: boolean): string | undefined {
    const streams = [["stdout", end.stdoutBytes, end.stdoutTruncated], ["stderr", end.stderrBytes, end.stderrTruncated]] as const;
    for (const [stream, total, cut] of streams) {
      if (cut) void this.guard(() => this.output.markCut(stream));
      else if (offsets && this.received[stream] < Number(total)) return `output_lost: ${stream} ended at byte ${this.received[stream]} of ${total}`;
    }
    return undefined;
  }

  /** Resolves when the listener has dealt with everything it was told. */
  async idle(): Promise<void> {
    await this.pending;
  }

  private guard(tell: () => void | Promise<void>): void | Promise<void> {
    try {
      const told = tell();
      if (!told) return undefined;
      const settled = Promise.race([told, this.unmutedUntil]).catch((e: unknown) => this.events.listenerFailed(e));
      const before = this.pending;
      this.pending = before ? before.then(() => settled) : settled;
      return this.pending;
    } catch (e) {
      return this.events.listenerFailed(e);
    }
  }
}
