import type { Outcome } from "./metrics";
import type { Refusal } from "./status";
import { HEADROOM, encodeChunkEvent, toEvent, type ChunkView, type Frame } from "./wire";

/** The caller's stream. `taken` is called when the bytes went into the caller's HTTP/2 window; never after a cancel. */
export interface SinkCall {
  write(event: Buffer, taken: () => void): void;
  end(): void;
  fail(refusal: Refusal): void;
}

/** What all sessions together hold at the moment. */
export interface QueueMeter {
  /** Output waiting in sinks, with its bookkeeping. */
  bytes: number;
  /** Execs that were delivered and have no terminal frame yet. */
  routes: number;
}

/** An event waiting for its turn. `data` counts towards credit, `cost` towards the bound on memory. */
interface Entry {
  event: Buffer | undefined;
  view: ChunkView | undefined;
  /** Merged neighbours: payload from HEADROOM on, `data` bytes of it used. */
  merged: Buffer | undefined;
  data: number;
  cost: number;
  last: boolean;
}

/** What a queued event costs besides its payload: objects, pool slack. */
const ENTRY_COST = 256;
const MERGE_MAX = 32 * 1024;
/** A base worker may send frames that a caller with default limits (4 MiB) could not receive. */
const SPLIT_OVER = 256 * 1024;

/**
 * Events of one exec on their way to one caller. One write is in flight at a time; what arrives meanwhile waits, and small
 * neighbouring chunks are merged, because the library's cost is per message.
 */
export class ExecSink {
  private queue: Entry[] = [];
  private writing = false;
  private closed = false;
  private settled = false;
  private cost = 0;
  /** How it ended; meaningful once `finished` was called. */
  outcome: Outcome = "end";

  /** `taken(bytes)` reports payload the caller took; `finished` that no more of this sink will be written. */
  constructor(
    private readonly call: SinkCall,
    private readonly limit: number,
    /** False for base workers, whose chunks carry no offset: neighbours of one stream then always join. */
    private readonly offsets: boolean,
    private readonly meter: QueueMeter,
    private readonly on: { taken(bytes: number): void; finished(): void },
  ) {}

  get open(): boolean {
    return !this.closed;
  }

  /** Takes a chunk; false when more is waiting than the bound allows. */
  chunk(frame: Frame, view: ChunkView): boolean {
    if (this.closed) return true;
    if (view.data.length > SPLIT_OVER) return this.split(view);
    const tail = this.queue.at(-1);
    if (tail?.view && this.mergeable(tail, view)) this.merge(tail, view);
    else this.add({ event: toEvent(frame), view, merged: undefined, data: view.data.length, cost: frame.bytes.length + ENTRY_COST, last: false });
    return this.cost <= this.limit;
  }

  /** Takes an event that is neither chunk nor end. */
  event(bytes: Buffer): void {
    if (!this.closed) this.add({ event: bytes, view: undefined, merged: undefined, data: 0, cost: bytes.length + ENTRY_COST, last: false });
  }

  /** Takes the terminal event; the stream ends with OK behind it. */
  finish(bytes: Buffer, outcome: Outcome): void {
    if (this.closed) return;
    this.closed = true;
    this.outcome = outcome;
    this.add({ event: bytes, view: undefined, merged: undefined, data: 0, cost: bytes.length + ENTRY_COST, last: true });
  }

  /** Ends the stream with a status; what waits is dropped. */
  fail(refusal: Refusal): void {
    if (this.closed) return;
    this.drop(refusal.reason === "taken_over" ? "taken_over" : "refused");
    this.call.fail(refusal);
  }

  /** Writes no more, ends nothing: the caller is gone. */
  drop(outcome: Outcome): void {
    if (this.settled) return;
    this.closed = true;
    this.outcome = outcome;
    this.queue = [];
    this.charge(-this.cost);
    this.settle();
  }

  private settle(): void {
    this.settled = true;
    this.on.finished();
  }

  private charge(cost: number): void {
    this.cost += cost;
    this.meter.bytes += cost;
  }

  private mergeable(tail: Entry, next: ChunkView): boolean {
    const view = tail.view;
    return view !== undefined && view.stream === next.stream && tail.data + next.data.length <= MERGE_MAX && (!this.offsets || view.offset + tail.data === next.offset);
  }

  private merge(tail: Entry, next: ChunkView): void {
    const view = tail.view as ChunkView;
    const need = HEADROOM + tail.data + next.data.length;
    if (!tail.merged || tail.merged.length < need) {
      const grown = Buffer.allocUnsafe(Math.min(HEADROOM + MERGE_MAX, Math.max(need, 2 * (tail.merged?.length ?? HEADROOM + tail.data))));
      (tail.merged?.subarray(HEADROOM) ?? view.data).copy(grown, HEADROOM, 0, tail.data);
      this.charge(grown.length - (tail.merged?.length ?? 0));
      tail.cost += grown.length - (tail.merged?.length ?? 0);
      tail.merged = grown;
      tail.event = undefined;
      view.data = grown;
    }
    next.data.copy(tail.merged, HEADROOM + tail.data);
    tail.data += next.data.length;
  }

  private split(view: ChunkView): boolean {
    for (let at = 0; at < view.data.length; at += MERGE_MAX) {
      const part = view.data.subarray(at, at + MERGE_MAX);
      const room = Buffer.allocUnsafe(HEADROOM + part.length);
      part.copy(room, HEADROOM);
      const event = encodeChunkEvent(room, part.length, { reqId: view.reqId, stream: view.stream, offset: this.offsets ? view.offset + at : 0 });
      this.add({ event, view: undefined, merged: undefined, data: part.length, cost: event.length + ENTRY_COST, last: false });
    }
    return this.cost <= this.limit;
  }

  private add(entry: Entry): void {
    this.charge(entry.cost);
    this.queue.push(entry);
    if (!this.writing) this.next();
  }

  private next(): void {
    const entry = this.queue.shift();
    if (!entry) return;
    this.writing = true;
    const event = entry.event ?? encodeChunkEvent(entry.merged as Buffer, entry.data, entry.view as ChunkView);
    this.call.write(event, () => {
      // drop() has counted everything already.
      if (this.settled) return;
      this.writing = false;
      this.charge(-entry.cost);
      if (entry.data) this.on.taken(entry.data);
      if (entry.last) this.settle();
      else this.next();
    });
    if (entry.last) this.call.end();
  }
}
