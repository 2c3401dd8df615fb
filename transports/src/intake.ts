import { Stream, type Chunk, type End } from "@dialout/proto";
import { Flow, type FlowEvents } from "./flow";
import type { ExecOptions, StreamName } from "./types";

export interface IntakeEvents extends FlowEvents {
  /** Bytes in the middle are missing. */
  lost(message: string): void;
}

/** Takes a command's chunks over any number of deliveries: each byte counts once, in order. */
export class Intake {
  readonly flow: Flow;
  private readonly received: Record<StreamName, number> = { stdout: 0, stderr: 0 };

  constructor(cap: number, onData: ExecOptions["onData"], private readonly events: IntakeEvents) {
    this.flow = new Flow(cap, onData, events);
  }

  /** Where output has to continue from. */
  get resume(): { resumeStdout: bigint; resumeStderr: bigint } {
    return { resumeStdout: BigInt(this.received.stdout), resumeStderr: BigInt(this.received.stderr) };
  }

  /** `offsets` false: a base peer, whose chunks are simply in order. A returned promise asks the source to wait. */
  chunk(chunk: Chunk, offsets: boolean): void | Promise<void> {
    const stream: StreamName = chunk.stream === Stream.STREAM_STDERR ? "stderr" : "stdout";
    const have = this.received[stream];
    const at = offsets ? Number(chunk.offset) : have;
    if (at > have) return this.events.lost(`output_lost: ${stream} continues at byte ${at} but only ${have} arrived`);
    const fresh = chunk.data.subarray(have - at);
    if (!fresh.length) return undefined;
    this.received[stream] += fresh.length;
    return this.flow.add(fresh, stream);
  }

  /** Applies what the terminal event says about the streams. Returns what is missing, if anything. */
  finish(end: End, offsets: boolean): string | undefined {
    const streams = [["stdout", end.stdoutBytes, end.stdoutTruncated], ["stderr", end.stderrBytes, end.stderrTruncated]] as const;
    for (const [stream, total, cut] of streams) {
      if (cut) this.flow.markCut(stream);
      else if (offsets && this.received[stream] < Number(total)) return `output_lost: ${stream} ended at byte ${this.received[stream]} of ${total}`;
    }
    return undefined;
  }
}
