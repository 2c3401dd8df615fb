import { spawn, type ChildProcess } from "node:child_process";
import { closeSync } from "node:fs";
import type net from "node:net";
import type { Writable } from "node:stream";
import type { Exit, Input } from "./launcher";
import type { OutputPipe, PipeFactory } from "./pipes";

/** Starting a process holds this one up for milliseconds. What is only stock for later waits until the present command is on its way, or its outcome. */
const LATER_MS = 3;
export const later = (work: () => void): void => void setTimeout(work, LATER_MS);

/** Above this many bytes an argument of exec(2) is refused (MAX_ARG_STRLEN is 128 KiB); such a command is evaluated in place. */
const ARGUMENT_MAX = 120_000;

/**
 * Waits on descriptor 3 for "<bytes> <traceparent>\n<command>", then becomes `bash -c command`. Start-up costs (spawn,
 * namespaces, change of user) are thus paid before the command arrives, and the command is a fresh bash all the same.
 */
const SCRIPT = `
cd -- "$0" 2>/dev/null || cd /
unset OLDPWD
LC_ALL=C IFS=' ' read -r -u 3 dialout_n dialout_t && LC_ALL=C IFS= read -r -N "$dialout_n" -u 3 dialout_c || exit 0
exec 3<&-
[ "$dialout_t" = - ] || export TRACEPARENT="$dialout_t"
[ "$dialout_n" -gt ${ARGUMENT_MAX} ] || exec bash -c "$dialout_c"
BASH_ARGV0=bash
eval "$dialout_c"
`;

/** A bash that waits for its command. */
export class Parked {
  readonly exited: Promise<Exit>;
  private constructor(
    readonly child: ChildProcess,
    readonly stdout: net.Socket,
    readonly stderr: net.Socket,
  ) {
    this.exited = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code, signal) => resolve(signal === null ? { code: code ?? 0 } : { signal }));
    });
    this.exited.catch(() => undefined); // whoever runs a command waits for it; an unused one may fail unseen
    for (const s of [stdout, stderr]) s.on("error", () => undefined);
    this.control.on("error", () => undefined);
  }

  /** @param prefix programs to go through, e.g. `["setpriv", "--reuid=1001"]`; may be empty */
  static async spawn(prefix: string[], pipes: PipeFactory, options: { cwd: string; env: Record<string, string>; stdin?: number }): Promise<Parked> {
    const taken: OutputPipe[] = [];
    try {
      taken.push(await pipes.take(), await pipes.take());
      const [out, err] = taken as [OutputPipe, OutputPipe];
      const [file, ...args] = [...prefix, "bash", "-c", SCRIPT, options.cwd];
      const child = spawn(file as string, args, { cwd: "/", detached: true, env: options.env, stdio: [options.stdin ?? "ignore", out.childFd, err.childFd, "pipe"] });
      return new Parked(child, out.socket, err.socket);
    } catch (e) {
      for (const p of taken) p.socket.destroy();
      throw e;
    } finally {
      for (const p of taken) closeSync(p.childFd);
    }
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** Whether it still waits; a place whose process died meanwhile must not be used. */
  get usable(): boolean {
    return this.child.pid !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  release(input: Input): void {
    const bytes = Buffer.from(input.command, "utf8");
    this.control.write(`${bytes.length} ${input.traceparent || "-"}\n`);
    this.control.end(bytes);
  }

  discard(): void {
    this.control.destroy();
    this.stdout.destroy();
    this.stderr.destroy();
  }

  private get control(): Writable {
    return this.child.stdio[3] as Writable;
  }
}
