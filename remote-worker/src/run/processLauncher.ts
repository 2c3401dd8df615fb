import { randomInt, randomUUID } from "node:crypto";
import { hunt, Quarry, type KillResult, type Marks } from "../kill/hunt";
import { type ProcFs } from "../kill/procfs";
import type { ExecUser } from "../settings";
import { MARK } from "./env";
import type { Exit, Launcher, Prepared, RunningCommand } from "./launcher";
import { later, Parked } from "./park";
import type { Spawner } from "./spawner";

/** Group ids for marks: far above any real group, so that the mark opens no file to the command. */
const GID_BASE = 0x7000_0000;
const GID_SPAN = 0x0fff_ffff;
/** A run longer than this may have seen pids wrap, so that "younger means a higher pid" no longer holds. */
const PID_ORDER_MS = 30_000;

export interface ProcessOptions {
  kind: "user" | "none";
  /** Change to this user; needs CAP_SETUID and CAP_SETGID. */
  user?: ExecUser;
  /** Give each command a group of its own as a mark that it cannot shed. */
  groupMark: boolean;
  /** The pid namespace holds only the worker and its commands. */
  ownNamespace: boolean;
  leftovers: "kill" | "keep";
  cwd: string;
  env: Record<string, string>;
}

/** Runs commands in the worker's own namespaces, found again by marks. */
export class ProcessLauncher implements Launcher {
  readonly kind: "user" | "none";
  private readonly live = new Set<Command>();
  private spare: Promise<Place>[] = [];
  private closed = false;

  constructor(
    private readonly options: ProcessOptions,
    private readonly spawner: Spawner,
    private readonly proc: ProcFs,
    private readonly own: ReadonlySet<number>,
    private readonly spares: number,
  ) {
    this.kind = options.kind;
  }

  async prepare(stdin?: Uint8Array): Promise<Prepared> {
    if (stdin === undefined) {
      for (let next = this.spare.shift(); next; next = this.spare.shift()) {
        const place = await next.catch(() => undefined);
        later(() => this.refill());
        if (place?.parked.usable) return this.prepared(place);
        place?.parked.discard();
      }
    }
    const place = await this.place(stdin);
    if (stdin === undefined) later(() => this.refill());
    return this.prepared(place);
  }

  close(): void {
    this.closed = true;
    for (const p of this.spare.splice(0)) void p.then((x) => x.parked.discard(), () => undefined);
  }

  private refill(): void {
    while (!this.closed && this.spare.length < this.spares) {
      const next = this.place();
      next.catch(() => undefined);
      this.spare.push(next);
    }
  }

  private async place(stdin?: Uint8Array): Promise<Place> {
    const { user, groupMark, env, cwd } = this.options;
    const marks: Marks = { env: randomUUID() };
    const prefix: string[] = [];
    if (groupMark) marks.gid = GID_BASE + randomInt(GID_SPAN);
    if (user || groupMark) {
      prefix.push("setpriv", `--groups=${[marks.gid].filter((g) => g !== undefined).join(",")}`);
      if (user) prefix.push(`--reuid=${user.uid}`, `--regid=${user.gid}`, "--no-new-privs");
      if (marks.gid === undefined) prefix.splice(1, 1, "--clear-groups");
    }
    const bornMs = performance.now();
    const parked = await Parked.spawn(prefix, this.spawner, { cwd, env: { ...env, [MARK]: marks.env }, stdin });
    const p = this.proc.stat(parked.pid);
    if (p) marks.leader = { pid: p.pid, start: p.start };
    return { parked, marks, bornMs };
  }

  private prepared(place: Place): Prepared {
    return {
      marks: place.marks,
      start: (input) => {
        const uid = this.options.user?.uid ?? process.getuid?.() ?? 0;
        const quarry = new Quarry(place.marks, this.proc, this.own, uid);
        const command = new Command(place, quarry, this.proc, this.options.leftovers, () => this.options.ownNamespace && this.live.size <= 1, () => this.live.delete(command));
        this.live.add(command);
        place.parked.release(input);
        return command;
      },
      discard: () => place.parked.discard(),
    };
  }
}

interface Place {
  parked: Parked;
  marks: Marks;
  bornMs: number;
}

class Command implements RunningCommand {
  readonly exited: Promise<Exit>;
  private killing: Promise<KillResult> | undefined;

  constructor(
    private readonly place: Place,
    private readonly quarry: Quarry,
    private readonly proc: ProcFs,
    private readonly leftovers: "kill" | "keep",
    private readonly alone: () => boolean,
    private readonly over: () => void,
  ) {
    this.exited = place.parked.exited;
  }

  get stdout() {
    return this.place.parked.stdout;
  }
  get stderr() {
    return this.place.parked.stderr;
  }

  observe(): void {
    if (this.place.marks.gid === undefined) this.quarry.look();
  }

  kill(): Promise<KillResult> {
    this.killing ??= hunt(this.quarry, this.proc, { takeSuspects: this.alone }).finally(this.over);
    return this.killing;
  }

  async settle(): Promise<KillResult | undefined> {
    if (this.killing) return this.killing;
    const leader = this.place.marks.leader?.pid ?? 0;
    const ordered = performance.now() - this.place.bornMs < PID_ORDER_MS && this.proc.lastPid() > leader;
    const seen = this.leftovers === "kill" ? this.quarry.look({ newerThan: ordered ? leader : 0 }) : undefined;
    const present = seen && (seen.members.length > 0 || (seen.suspects.length > 0 && this.alone()));
    if (present) return this.kill();
    this.over();
    return undefined;
  }

  killNow(): void {
    for (const p of this.quarry.look().members) {
      try {
        process.kill(p.pid, "SIGKILL");
      } catch {
        // gone already, or not ours to end; nothing more can be done on the way out
      }
    }
  }
}
