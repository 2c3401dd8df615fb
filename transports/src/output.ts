import { TRUNCATION_MARKER, type StreamName } from "./types";

/** One stream's bytes up to a cap. Memory never exceeds the cap, whatever is added. */
export class CappedBuffer {
  private readonly parts: Buffer[] = [];
  private kept = 0;
  /** Bytes added, dropped ones included. */
  total = 0;
  private cut = false;

  constructor(private readonly cap: number) {}

  /** Keeps what fits and returns it; the part beyond the cap is dropped. */
  add(chunk: Buffer): Buffer {
    this.total += chunk.length;
    const room = this.cap - this.kept;
    const fits = chunk.length > room ? chunk.subarray(0, room) : chunk;
    if (fits.length) this.parts.push(fits);
    this.kept += fits.length;
    return fits;
  }

  /** The source cut it before us. */
  markCut(): void {
    this.cut = true;
  }

  get truncated(): boolean {
    return this.cut || this.total > this.cap;
  }

  result(): Buffer {
    return Buffer.concat(this.truncated ? [...this.parts, Buffer.from(TRUNCATION_MARKER)] : this.parts);
  }
}

type OnData = (chunk: Buffer, stream: StreamName) => void | Promise<void>;

/** Both streams of a command, and the listener that is told about every kept byte once, in order per stream. */
export class Output {
  readonly stdout: CappedBuffer;
  readonly stderr: CappedBuffer;

  constructor(cap: number, private readonly onData: OnData | undefined) {
    this.stdout = new CappedBuffer(cap);
    this.stderr = new CappedBuffer(cap);
  }

  /** Returns the listener's promise when it wants the source held back. Throws what the listener throws. */
  add(chunk: Buffer, stream: StreamName): void | Promise<void> {
    const buffer = this[stream];
    const before = buffer.truncated;
    const fits = buffer.add(chunk);
    if (!this.onData) return undefined;
    const first = fits.length ? this.onData(fits, stream) : undefined;
    if (before || !buffer.truncated) return first;
    const marker = () => this.onData?.(Buffer.from(TRUNCATION_MARKER), stream);
    return first ? first.then(marker) : marker();
  }

  /** Records a cut made by the source, and tells the listener. */
  markCut(stream: StreamName): void | Promise<void> {
    if (this[stream].truncated) return undefined;
    this[stream].markCut();
    return this.onData?.(Buffer.from(TRUNCATION_MARKER), stream);
  }

  get truncated(): boolean {
    return this.stdout.truncated || this.stderr.truncated;
  }
}
