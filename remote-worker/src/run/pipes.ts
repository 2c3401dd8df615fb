import { closeSync, constants, mkdirSync, openSync, rmSync, unlinkSync, writeSync } from "node:fs";
import path from "node:path";
import net from "node:net";

/** Into which all pipes are read in turn: a buffer for each read would be most of the garbage of a worker that streams. */
const SHARED = Buffer.alloc(64 * 1024);

/** The readable end of a pipe. It has no `data` events. */
export class PipeReader extends net.Socket {
  private readonly into: { take?: (bytes: Buffer) => void; early: Buffer[] };

  constructor(fd: number) {
    const into: PipeReader["into"] = { early: [] };
    const callback = (n: number) => {
      const bytes = SHARED.subarray(0, n);
      if (into.take) into.take(bytes);
      else into.early.push(Buffer.from(bytes));
      return into.take !== undefined;
    };
    // `onread` is documented for this constructor, but missing in its types.
    super({ fd, readable: true, writable: false, onread: { buffer: SHARED, callback } } as net.SocketConstructorOpts);
    this.into = into;
    this.on("error", () => undefined);
  }

  /** From now on `take` gets what is written; the bytes are its own only until it returns. */
  deliver(take: (bytes: Buffer) => void): void {
    for (const bytes of this.into.early.splice(0)) take(bytes);
    this.into.take = take;
    this.resume();
  }
}

/**
 * A named pipe on its way to a process. Node's own "pipe" stdio is a socket pair, and on a socket `echo x >/dev/stderr` and
 * `tee /dev/stderr` fail with ENXIO. A FIFO that is opened at both ends and unlinked behaves like a pipe, and its mode lets
 * a command of another uid reopen it through /dev/stdout.
 */
export class Fifo {
  // Opening for read and write never blocks; with that end open, the others do not block, and no reader sees an early end.
  private readonly guard: number;
  constructor(readonly file: string) {
    this.guard = openSync(file, constants.O_RDWR);
  }

  reader(): PipeReader {
    return new PipeReader(openSync(this.file, constants.O_RDONLY | constants.O_NONBLOCK));
  }

  writer(): net.Socket {
    const socket = new net.Socket({ fd: openSync(this.file, constants.O_WRONLY | constants.O_NONBLOCK), readable: false, writable: true });
    return socket.on("error", () => undefined);
  }

  /** The other process has its end, or will never have it. */
  release(): void {
    closeSync(this.guard);
    unlinkSync(this.file);
  }
}

const BATCH = 96;

/** Named pipes in stock, and files that a process reads as its input, in a folder that commands cannot read. */
export class PipeFolder {
  private readonly ready: string[] = [];
  private making: Promise<void> | undefined;
  private n = 0;

  /** @param dir emptied here; @param mkfifo makes named pipes that everybody may open */
  constructor(
    private readonly dir: string,
    private readonly mkfifo: (files: string[]) => Promise<void>,
  ) {
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  }

  async take(): Promise<Fifo> {
    while (this.ready.length === 0) await this.make();
    const file = this.ready.pop() as string;
    if (this.ready.length < BATCH / 4) void this.make().catch(() => undefined); // the next take() meets the error itself
    return new Fifo(file);
  }

  /** A file to be read as standard input: EOF is there from the start, nothing can block, and /dev/stdin can be opened again. */
  input(bytes: Uint8Array): string {
    const file = this.name();
    const out = openSync(file, "wx", 0o444);
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(out, bytes, done);
      return file;
    } catch (e) {
      unlinkSync(file);
      throw e;
    } finally {
      closeSync(out);
    }
  }

  private name(): string {
    return path.join(this.dir, `p${this.n++}`);
  }

  private make(): Promise<void> {
    this.making ??= (async () => {
      const files = Array.from({ length: BATCH }, () => this.name());
      await this.mkfifo(files);
      this.ready.push(...files);
    })().finally(() => {
      this.making = undefined;
    });
    return this.making;
  }
}
