import { closeSync, openSync, readSync, writeSync } from "node:fs";

const BLOCK = 32 * 1024;

export interface OutputLimits {
  /** Bytes kept on disk, from the start of the stream. */
  spool: number;
  /** Bytes kept in memory behind what was sent, and read ahead of it when the spool is full. */
  ring: number;
  /** Bytes after which output is dropped (and counted). */
  cap: number;
}

/**
 * One output stream of one command: everything from its start on disk up to a limit, the latest part in memory. Memory is
 * blocks of 32 KiB by position, so that single bytes cost no more than large writes. Small streams never touch the disk.
 */
export class OutputLog {
  /** Bytes held or once held: what a reader can be sent. */
  produced = 0;
  /** Bytes the command wrote, dropped ones included. */
  total = 0;
  private blocks = new Map<number, Buffer>();
  private firstBlock = 0;
  private fd: number | undefined;
  private spooled = 0;
  private spoolFailure: Error | undefined;

  /** @param file where to spool; created when the stream fills a block, or at its end when it is larger than `inline` bytes */
  constructor(
    private readonly file: string,
    private readonly limits: OutputLimits,
    private readonly inline: number,
  ) {}

  get truncated(): boolean {
    return this.total > this.produced;
  }

  /** Why the disk stopped taking output, when it did. */
  get failure(): Error | undefined {
    return this.spoolFailure;
  }

  /** Whether to go on reading from the command. @param sent position up to which a reader was sent output */
  wants(sent: number): boolean {
    return this.produced >= this.limits.cap || this.spoolOpen() || this.produced - sent < this.limits.ring;
  }

  append(data: Buffer, sent: number): void {
    this.total += data.length;
    const room = this.limits.cap - this.produced;
    let rest = data.length > room ? data.subarray(0, Math.max(0, room)) : data;
    while (rest.length > 0) {
      const index = Math.floor(this.produced / BLOCK);
      const at = this.produced % BLOCK;
      let block = this.blocks.get(index);
      if (!block) this.blocks.set(index, (block = Buffer.allocUnsafe(BLOCK)));
      const n = rest.copy(block, at);
      this.produced += n;
      rest = rest.subarray(n);
    }
    if (this.produced - this.spooled >= BLOCK) this.spool(BLOCK);
    this.forget(sent);
  }

  /** Bytes at `offset`, at most `max` and at most one block; empty at the end; undefined when they are no longer held. */
  read(offset: number, max: number): Buffer | undefined {
    if (offset >= this.produced) return Buffer.alloc(0);
    const index = Math.floor(offset / BLOCK);
    const n = Math.min(max, this.produced - offset, BLOCK - (offset % BLOCK));
    const block = this.blocks.get(index);
    if (block) return block.subarray(offset % BLOCK, (offset % BLOCK) + n);
    if (this.fd === undefined || offset + n > this.spooled) return undefined;
    const out = Buffer.allocUnsafe(n);
    return readSync(this.fd, out, 0, n, offset) === n ? out : undefined;
  }

  /** Whether everything from `offset` to the present end can be read. */
  holds(offset: number): boolean {
    if (offset > this.produced) return false;
    return offset >= this.firstBlock * BLOCK || (this.fd !== undefined && this.spooled >= this.firstBlock * BLOCK);
  }

  /** Once the stream has ended: where all of it is kept; undefined when its start is no longer held. */
  seal(): { file: string } | { bytes: Buffer } | undefined {
    if (this.fd === undefined && this.firstBlock === 0 && this.produced <= this.inline) return { bytes: this.join() };
    this.spool(1);
    return this.fd !== undefined && this.spooled === this.produced ? { file: this.file } : undefined;
  }

  close(): void {
    if (this.fd !== undefined) closeSync(this.fd);
    this.fd = undefined;
    this.blocks.clear();
    this.firstBlock = Math.ceil(this.produced / BLOCK);
  }

  private spoolOpen(): boolean {
    return this.produced < this.limits.spool && !this.spoolFailure;
  }

  /** Writes to disk what is not there yet, in pieces of `grain` bytes. */
  private spool(grain: number): void {
    if (this.spoolFailure) return;
    try {
      this.fd ??= openSync(this.file, "wx+", 0o600);
      const end = Math.min(this.produced - (this.produced % grain), this.limits.spool);
      while (this.spooled < end) {
        const block = this.blocks.get(Math.floor(this.spooled / BLOCK));
        if (!block) throw new Error("a gap between disk and memory");
        const at = this.spooled % BLOCK;
        this.spooled += writeSync(this.fd, block, at, Math.min(BLOCK - at, end - this.spooled), this.spooled);
      }
    } catch (e) {
      this.spoolFailure = e as Error;
    }
  }

  private forget(sent: number): void {
    // What is on disk can go once it is a ring's length old; what is not must also be a ring's length behind the reader.
    const behind = this.produced - this.limits.ring;
    for (;;) {
      const end = (this.firstBlock + 1) * BLOCK;
      const safe = end <= this.spooled ? behind : Math.min(behind, sent - this.limits.ring);
      if (end > safe) return;
      this.blocks.delete(this.firstBlock++);
    }
  }

  private join(): Buffer {
    const parts: Buffer[] = [];
    for (let at = 0; at < this.produced; ) {
      const part = this.read(at, BLOCK);
      if (!part) break;
      parts.push(part);
      at += part.length;
    }
    return Buffer.concat(parts);
  }
}

/** Output of an ended command, read back from its file or its journal record. */
export class StoredOutput {
  private fd: number | undefined;
  constructor(private readonly source: { file: string } | { bytes: Buffer } | undefined, readonly produced: number) {}

  read(offset: number, max: number): Buffer | undefined {
    if (offset >= this.produced) return Buffer.alloc(0);
    if (!this.source) return undefined;
    const n = Math.min(max, BLOCK, this.produced - offset);
    if ("bytes" in this.source) return this.source.bytes.subarray(offset, offset + n);
    try {
      this.fd ??= openSync(this.source.file, "r");
      const out = Buffer.allocUnsafe(n);
      return readSync(this.fd, out, 0, n, offset) === n ? out : undefined;
    } catch {
      return undefined;
    }
  }

  holds(offset: number): boolean {
    return offset <= this.produced && (offset === this.produced || this.read(this.produced - 1, 1) !== undefined);
  }

  close(): void {
    if (this.fd !== undefined) closeSync(this.fd);
    this.fd = undefined;
  }
}

/** What a delivery reads from. */
export interface Readable {
  readonly produced: number;
  read(offset: number, max: number): Buffer | undefined;
  holds(offset: number): boolean;
}
