import { readFileSync } from "node:fs";
import type { KillResult } from "../kill/hunt";
import { isDead, ProcFs } from "../kill/procfs";
import type { Spawned, Spawner } from "./spawner";

/** Masks the given paths in the new mount namespace, says so, and stays as process 1 (reaping) until its input ends. */
const HOLDER = `
set -e
for m in "$@"; do
  if [ -d "$m" ]; then mount -t tmpfs -o mode=0700,size=4k,nr_inodes=2 tmpfs "$m"; else mount --bind /dev/null "$m"; fi
done
echo ready
exec >&- 2>&-
read -r _ || :
`;

const DEADLINE_MS = 5_000;

/**
 * A pid namespace with a mount namespace and a /proc of its own. The kernel kills everything inside when its process 1 ends,
 * and process 1 is gone only after all others are: that is the proof that nothing was left.
 */
export class Cell {
  private constructor(
    private readonly process: Spawned,
    private readonly holder: number,
    private readonly userNamespace: boolean,
  ) {}

  /** @param masks files and folders that no command may see; @param userNamespace for a worker without CAP_SYS_ADMIN */
  static async make(spawner: Spawner, masks: string[], userNamespace: boolean): Promise<Cell> {
    const flags = [...(userNamespace ? ["--user", "--map-root-user"] : []), "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    const spawned = await spawner.spawn({ argv: ["unshare", ...flags, "bash", "-c", HOLDER, "dialout-cell", ...masks], env: { PATH: process.env.PATH ?? "", LC_ALL: "C" }, controlFd: 0 });
    await ready(spawned);
    return new Cell(spawned, await childOf(spawned.pid), userNamespace);
  }

  get usable(): boolean {
    return this.process.living;
  }

  /** The programs that carry a process into the cell, as a prefix of its argument list. */
  entry(): string[] {
    const ns = `/proc/${this.process.pid}/ns`;
    return [
      "nsenter",
      ...(this.userNamespace ? [`--user=${ns}/user`, "--preserve-credentials"] : []),
      `--mount=${ns}/mnt`,
      `--pid=${ns}/pid_for_children`,
      "setsid",
    ];
  }

  /** Living processes inside, process 1 left out; undefined when the cell cannot be looked into. */
  inhabitants(): { pid: number; comm: string; state: string }[] | undefined {
    const proc = new ProcFs(`/proc/${this.holder}/root/proc`);
    try {
      return proc.pids().flatMap((pid) => {
        const p = pid === 1 ? undefined : proc.stat(pid);
        return p && !isDead(p) ? [p] : [];
      });
    } catch {
      return undefined;
    }
  }

  /** Whether nothing at all is inside but process 1, not even a zombie. */
  empty(): boolean {
    try {
      return new ProcFs(`/proc/${this.holder}/root/proc`).pids().every((pid) => pid === 1);
    } catch {
      return false;
    }
  }

  killNow(): void {
    try {
      if (this.usable) process.kill(this.holder, "SIGKILL");
    } catch {
      // ended by itself
    }
  }

  /** Ends everything inside and waits until the kernel says so. */
  async kill(): Promise<KillResult> {
    const found = this.inhabitants();
    this.killNow();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => (timer = setTimeout(() => resolve("late"), DEADLINE_MS)));
    const how = await Promise.race([this.process.exited, late]);
    clearTimeout(timer);
    const n = found?.length ?? 0;
    if (how !== "late") return { found: n, killed: n, remaining: 0, verified: true, detail: "" };
    const left = this.inhabitants();
    return {
      found: Math.max(n, left?.length ?? 0),
      killed: Math.max(0, n - (left?.length ?? n)),
      remaining: left?.length ?? n,
      verified: false,
      detail: left ? `still there: ${left.map((p) => `${p.pid} (${p.comm}, state ${p.state})`).join(", ")}` : "the pid namespace has not ended and cannot be looked into",
    };
  }

  /** Ends an unused cell without waiting. */
  discard(): void {
    this.process.control.destroy();
  }
}

function ready({ stdout, stderr, exited }: Spawned): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = "";
    stderr.deliver((bytes) => (said = (said + bytes.toString()).slice(-500)));
    stdout.deliver(() => resolve());
    const closed = new Promise((r) => stderr.once("close", r));
    void Promise.all([exited, closed]).then(([exit]) => reject(new Error(`unshare ended with ${exit.signal ?? exit.code}: ${said.trim() || "no message"}`)));
  });
}

/** The only child of a process. `children` needs a kernel option that is common but not universal, hence the second way. */
async function childOf(pid: number): Promise<number> {
  try {
    const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")[0]);
    if (child > 0) return child;
  } catch {
    // look through the whole table instead
  }
  const proc = new ProcFs();
  const found = proc.pids().find((p) => proc.stat(p)?.ppid === pid);
  if (found === undefined) throw new Error("process 1 of a new pid namespace was not found");
  return found;
}
