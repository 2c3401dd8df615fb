import type { Exit, Input } from "./launcher";
import type { PipeReader } from "./pipes";
import type { Spawned, Spawner } from "./spawner";

/** Starting a process takes a core for milliseconds. What is only stock for later waits until the present command is on its way, or its outcome. */
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
  private constructor(private readonly process: Spawned) {}

  /** @param prefix programs to go through, e.g. `["setpriv", "--reuid=1001"]`; may be empty */
  static async spawn(prefix: string[], spawner: Spawner, { cwd, env, stdin }: { cwd: string; env: Record<string, string>; stdin?: Uint8Array }): Promise<Parked> {
    return new Parked(await spawner.spawn({ argv: [...prefix, "bash", "-c", SCRIPT, cwd], env, stdin, controlFd: 3 }));
  }

  get pid(): number {
    return this.process.pid;
  }
  get exited(): Promise<Exit> {
    return this.process.exited;
  }
  get stdout(): PipeReader {
    return this.process.stdout;
  }
  get stderr(): PipeReader {
    return this.process.stderr;
  }

  /** Whether it still waits; a place whose process died meanwhile must not be used. */
  get usable(): boolean {
    return this.process.living;
  }

  release(input: Input): void {
    const bytes = Buffer.from(input.command, "utf8");
    this.process.control.write(`${bytes.length} ${input.traceparent || "-"}\n`);
    this.process.control.end(bytes);
  }

  discard(): void {
    for (const s of [this.process.control, this.stdout, this.stderr]) s.destroy();
  }
}
