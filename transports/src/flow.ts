import { Output } from "./output";
import type { ExecOptions, StreamName } from "./types";

export interface FlowEvents {
  /** More output came than the cap allows. Told once. */
  flooded(): void;
  listenerFailed(cause: unknown): void;
}

/** A command's output on its way to the caller: capped, and at the pace of the caller's listener. */
export class Flow {
  readonly output: Output;
  private readonly muted = new AbortController();
  private readonly untilMuted: Promise<void>;
  private pending: Promise<void> | undefined;
  private flooded = false;

  constructor(cap: number, onData: ExecOptions["onData"], private readonly events: FlowEvents) {
    this.output = new Output(cap, onData && ((c, s) => (this.muted.signal.aborted ? undefined : onData(c, s))));
    this.untilMuted = new Promise((resolve) => this.muted.signal.addEventListener("abort", () => resolve(), { once: true }));
  }

  /** Tells the listener nothing more, and waits for it no longer. */
  mute(): void {
    this.muted.abort();
  }

  /** A returned promise, which never rejects, asks the source to wait for it. */
  add(chunk: Buffer, stream: StreamName): void | Promise<void> {
    const held = this.guard(() => this.output.add(chunk, stream));
    if (this.output.truncated && !this.flooded) {
      this.flooded = true;
      this.events.flooded();
    }
    return held;
  }

  /** The source cut the stream before us. */
  markCut(stream: StreamName): void {
    void this.guard(() => this.output.markCut(stream));
  }

  /** Resolves when the listener has dealt with everything it was told. */
  async idle(): Promise<void> {
    await this.pending;
  }

  private guard(tell: () => void | Promise<void>): void | Promise<void> {
    try {
      const told = tell();
      if (!told) return undefined;
      const settled = Promise.race([told, this.untilMuted]).catch((e: unknown) => this.events.listenerFailed(e));
      const before = this.pending;
      this.pending = before ? before.then(() => settled) : settled;
      return this.pending;
    } catch (e) {
      return this.events.listenerFailed(e);
    }
  }
}
