import { MARK } from "../run/env";
import { idOf, isDead, type Proc, type ProcFs } from "./procfs";

/** What tells the processes of one command from all others. Kept in the journal, so that a later worker can hunt as well. */
export interface Marks {
  /** Value of DIALOUT_EXEC_MARK in the environment; a process can shed it. */
  env: string;
  /** A supplementary group that only this command has; a process without CAP_SETGID cannot shed it. */
  gid?: number;
  leader?: { pid: number; start: number };
}

export interface KillResult {
  found: number;
  killed: number;
  remaining: number;
  /** True only when we looked and nothing was left. */
  verified: boolean;
  detail: string;
}

/** What one look at the process table says about a command. */
export interface Sighting {
  /** Its processes, zombies left out. */
  members: Proc[];
  /** Processes of the same user, started since, that carry no mark and belong to nobody we know. Empty when marks cannot be shed. */
  suspects: Proc[];
}

/**
 * Recognises the processes of one command: by the group, by the environment, by descent, and by session and process group.
 * Descent is remembered: a child seen once stays known after its parent is gone.
 */
export class Quarry {
  private readonly known = new Set<string>();

  /**
   * @param own pids that are never members (the worker and its ancestors)
   * @param uid user the command runs as, to tell which unmarked processes could be its
   */
  constructor(
    readonly marks: Marks,
    private readonly proc: ProcFs,
    private readonly own: ReadonlySet<number>,
    private readonly uid: number,
  ) {
    if (marks.leader) this.known.add(idOf(marks.leader));
  }

  /** @param newerThan look only at pids above this one (a fast look, for when pids cannot have wrapped) */
  look(newerThan = 0): Sighting {
    const table = new Map<number, Proc>();
    for (const pid of this.proc.pids()) {
      if (pid < newerThan || this.own.has(pid)) continue;
      const p = this.proc.stat(pid);
      if (p && !isDead(p)) table.set(pid, p);
    }
    const members = new Map<number, Proc>();
    for (const p of table.values()) if (this.direct(p, table)) members.set(p.pid, p);
    for (let grown = true; grown; ) {
      grown = false;
      for (const p of table.values()) {
        if (members.has(p.pid) || !members.has(p.ppid)) continue;
        members.set(p.pid, p);
        grown = true;
      }
    }
    for (const p of members.values()) this.known.add(idOf(p));
    return { members: [...members.values()], suspects: this.marks.gid === undefined ? this.suspects(table, members) : [] };
  }

  private direct(p: Proc, table: Map<number, Proc>): boolean {
    if (this.known.has(idOf(p))) return true;
    const leader = this.marks.leader;
    if (leader && (p.pgrp === leader.pid || p.session === leader.pid)) {
      // The number can only have passed to somebody else when a younger process now leads it.
      const now = table.get(leader.pid);
      if (!now || now.start === leader.start) return p.start >= leader.start;
    }
    if (this.marks.gid !== undefined && this.proc.status(p.pid)?.groups.includes(this.marks.gid)) return true;
    return this.proc.env(p.pid, MARK) === this.marks.env;
  }

  private suspects(table: Map<number, Proc>, members: Map<number, Proc>): Proc[] {
    const since = this.marks.leader?.start ?? 0;
    return [...table.values()].filter((p) => {
      if (members.has(p.pid) || p.start < since || this.proc.status(p.pid)?.uid !== this.uid) return false;
      // A child of the worker is another command or a helper of ours; a marked one belongs to that other command.
      for (let up: Proc | undefined = p; up; up = table.get(up.ppid)) if (this.own.has(up.ppid) && up.ppid !== 1) return false;
      return typeof this.proc.env(p.pid, MARK) !== "string";
    });
  }
}

const ROUNDS = 200;
const STEP_MS = 10;
const DEADLINE_MS = 5_000;

export interface HuntOptions {
  /** Whether unmarked suspects are killed too (they can only belong to this command) or merely reported. */
  takeSuspects: () => boolean;
  send?: (pid: number, signal: NodeJS.Signals) => void;
  now?: () => number;
  pause?: (ms: number) => Promise<void>;
  deadlineMs?: number;
}

/**
 * Kills every process of a command. Stops what it finds and looks again until a look finds nothing new, so that no fork can
 * outrun it, then kills, then looks until nothing is left or the deadline has passed.
 */
export async function hunt(quarry: Quarry, proc: ProcFs, options: HuntOptions): Promise<KillResult> {
  const send = options.send ?? ((pid, signal) => void process.kill(pid, signal));
  const now = options.now ?? (() => performance.now());
  const pause = options.pause ?? ((ms) => new Promise((r) => setTimeout(r, ms)));
  const end = now() + (options.deadlineMs ?? DEADLINE_MS);
  const seen = new Map<string, Proc>();
  const refused = new Set<string>();

  const signal = (p: Proc, name: NodeJS.Signals) => {
    // Between the look and now the pid may have passed to somebody else.
    if (proc.stat(p.pid)?.start !== p.start) return;
    try {
      send(p.pid, name);
    } catch (e) {
      if ((e as NodeJS.ErrnoException).code !== "ESRCH") refused.add(idOf(p));
    }
  };
  const targets = (): Proc[] => {
    const { members, suspects } = quarry.look();
    return options.takeSuspects() ? [...members, ...suspects] : members;
  };

  for (let round = 0; round < ROUNDS && now() < end; round++) {
    const fresh = targets().filter((p) => !seen.has(idOf(p)));
    if (fresh.length === 0) break;
    for (const p of fresh) {
      seen.set(idOf(p), p);
      signal(p, "SIGSTOP");
    }
  }
  for (;;) {
    const left = targets();
    for (const p of left) {
      seen.set(idOf(p), p);
      signal(p, "SIGKILL");
    }
    if (left.length === 0 || now() >= end) return report(seen, left, refused, quarry.look().suspects, options.takeSuspects());
    await pause(STEP_MS);
  }
}

function report(seen: Map<string, Proc>, left: Proc[], refused: Set<string>, suspects: Proc[], taken: boolean): KillResult {
  const name = (p: Proc) => `${p.pid} (${p.comm}, state ${p.state}${refused.has(idOf(p)) ? ", signal refused" : ""})`;
  const detail: string[] = [];
  if (left.length > 0) detail.push(`still there: ${left.slice(0, 8).map(name).join(", ")}`);
  const open = taken ? [] : suspects;
  if (open.length > 0) detail.push(`unmarked processes of the same user, started since, may belong to it: ${open.slice(0, 8).map(name).join(", ")}`);
  return {
    found: seen.size,
    killed: seen.size - left.length,
    remaining: left.length,
    verified: left.length === 0 && open.length === 0,
    detail: detail.join("; "),
  };
}
