import { execFile } from "node:child_process";
import { closeSync, constants, mkdirSync, openSync, rmSync, unlinkSync } from "node:fs";
import path from "node:path";
import net from "node:net";
import { promisify } from "node:util";

const run = promisify(execFile);

/** One output pipe: `childFd` goes to the command and is closed here after the spawn, `socket` is our end. */
export interface OutputPipe {
  childFd: number;
  socket: net.Socket;
}

const BATCH = 32;

/**
 * Makes real pipes for the output of commands. Node's own "pipe" stdio is a socket pair, and on a socket `echo x >/dev/stderr`
 * and `tee /dev/stderr` fail with ENXIO. A FIFO that is opened at both ends and unlinked behaves like a pipe, and its mode
 * lets a command of another uid reopen it through /dev/stdout.
 */
export class PipeFactory {
  private readonly ready: string[] = [];
  private making: Promise<void> | undefined;
  private n = 0;

  /** @param dir a folder of our own, not readable by commands */
  constructor(private readonly dir: string) {
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  }

  async take(): Promise<OutputPipe> {
    while (this.ready.length === 0) await this.make();
    const file = this.ready.pop() as string;
    if (this.ready.length < BATCH / 4) void this.make().catch(() => undefined); // the next take() meets the error itself
    // Opening for read and write never blocks; with that end open, the other two do not block either.
    const both = openSync(file, constants.O_RDWR);
    try {
      const ours = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
      const childFd = openSync(file, constants.O_WRONLY);
      return { childFd, socket: new net.Socket({ fd: ours, readable: true, writable: false }) };
    } finally {
      closeSync(both);
      unlinkSync(file);
    }
  }

  private make(): Promise<void> {
    this.making ??= (async () => {
      const names = Array.from({ length: BATCH }, () => path.join(this.dir, `p${process.pid}-${this.n++}`));
      await run("mkfifo", ["-m", "666", ...names]);
      this.ready.push(...names);
    })().finally(() => {
      this.making = undefined;
    });
    return this.making;
  }
}
