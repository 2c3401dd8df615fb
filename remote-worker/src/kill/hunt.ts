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
  /** No process can have slipped through. False: so many came and went that some may be missing. */
  whole: boolean;
  /** Its processes, zombies left out. */
  members: Proc[];
  /** Processes of the same user, started since, that carry no mark and belong to nobody we know. Empty when marks cannot be shed. */
  suspects: Proc[];
}

/**
 * Recognises the processes of one command. With a group of its own, by that group alone: it is inherited and cannot be shed.
 * Without, by the environment, by descent, and by session and process group; descent is remembered, so that a child seen
 * once stays known after its parent is gone.
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

  /**
   * Lists and looks until every process of a listing was still there when it was looked at: one that forks and ends between
   * the two would otherwise hand its place to a child that we never saw.
   * @param newerThan look only at pids above this one (a fast look, for when pids cannot have wrapped)
   * @param strangers pids that earlier looks of the same hunt found not to belong; they are passed over and added to
   * @param onMember told of each member at once
   */
  look({ newerThan = 0, strangers, onMember }: { newerThan?: number; strangers?: Set<number>; onMember?: (p: Proc) => void } = {}): Sighting {
    const looked = new Set(strangers);
    const table = new Map<number, Proc>();
    const members = new Map<number, Proc>();
    let whole = false;
    for (let listing = 0; listing < LISTINGS && !whole; listing++) {
      const fresh = this.proc.pids().filter((pid) => pid >= newerThan && !this.own.has(pid) && !looked.has(pid));
      whole = true;
      const seen: Proc[] = [];
      for (const pid of fresh) {
        looked.add(pid);
        const p = this.marks.gid === undefined ? this.proc.stat(pid) : this.byGroup(pid, this.marks.gid);
        if (p === "stranger") strangers?.add(pid);
        else if (p === undefined || isDead(p)) whole = false; // it may have ended just now, and left a child
        else seen.push(p);
      }
      if (this.marks.gid === undefined) for (const p of seen) table.set(p.pid, p);
      for (const p of this.marks.gid === undefined ? this.byTraces(table, seen, members) : seen) {
        members.set(p.pid, p);
        onMember?.(p);
      }
      // An environment that was empty because its process had just ended tells nothing.
      if (this.marks.gid === undefined && seen.some((p) => !members.has(p.pid) && this.mayLook(p) && !this.proc.alive(p))) whole = false;
    }
    return { whole, members: [...members.values()], suspects: this.suspects(table, members) };
  }

  /** The process when it is one of ours; undefined when it was gone before we could tell. */
  private byGroup(pid: number, gid: number): Proc | "stranger" | undefined {
    const leader = this.marks.leader;
    // The leader has its group only once setpriv has run.
    if (pid !== leader?.pid) {
      const status = this.proc.status(pid);
      if (!status) return undefined;
      if (!status.groups.includes(gid)) return "stranger";
    }
    const p = this.proc.stat(pid);
    return p && pid === leader?.pid && p.start !== leader.start ? "stranger" : p;
  }

  /** The members that a listing added: those that carry a trace, and all their descendants. */
  private byTraces(table: Map<number, Proc>, fresh: Proc[], members: Map<number, Proc>): Proc[] {
    const added = new Map<number, Proc>();
    for (const p of fresh) if (this.known.has(idOf(p)) || this.inSession(p, table) || this.markOf(p) === this.marks.env) added.set(p.pid, p);
    for (let grown = true; grown; ) {
      grown = false;
      for (const p of table.values()) {
        if (members.has(p.pid) || added.has(p.pid) || !(members.has(p.ppid) || added.has(p.ppid))) continue;
        added.set(p.pid, p);
        grown = true;
      }
    }
    for (const p of added.values()) this.known.add(idOf(p));
    return [...added.values()];
  }

  private suspects(table: Map<number, Proc>, members: Map<number, Proc>): Proc[] {
    if (this.uid < 0) return [];
    const since = this.marks.leader?.start ?? 0;
    return [...table.values()].filter((p) => !members.has(p.pid) && p.start >= since && this.mayLook(p) && !this.ours(p, table) && typeof this.markOf(p) !== "string");
  }

  /** Processes of other users are none of ours, and their environment is theirs. */
  private mayLook(p: Proc): boolean {
    if (this.uid < 0) return true;
    const status = this.proc.status(p.pid);
    return status === undefined || status.uid === this.uid;
  }

  private markOf(p: Proc): unknown {
    return this.mayLook(p) ? this.proc.env(p.pid, MARK) : undefined;
  }

  private inSession(p: Proc, table: Map<number, Proc>): boolean {
    const leader = this.marks.leader;
    if (!leader || (p.pgrp !== leader.pid && p.session !== leader.pid)) return false;
    // The number can only have passed to somebody else when a younger process now leads it.
    const now = table.get(leader.pid);
    return (!now || now.start === leader.start) && p.start >= leader.start;
  }

  /** Whether a process descends from the worker: then it is another command or a helper of ours. */
  private ours(p: Proc, table: Map<number, Proc>): boolean {
    for (let up: Proc | undefined = p; up; up = table.get(up.ppid)) if (this.own.has(up.ppid) && up.ppid !== 1) return true;
    return false;
  }
}

const ROUNDS = 200;
/** Listings of /proc in one look; each but the last showed processes that were gone when looked at. */
const LISTINGS = 50;
const STEP_MS = 10;
const DEADLINE_MS = 5_000;
const MIN_LOOKS = 10;

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
  const look = (options_: Parameters<Quarry["look"]>[0]) => {
    const s = quarry.look(options_);
    return { whole: s.whole, targets: options.takeSuspects() ? [...s.members, ...s.suspects] : s.members };
  };

  const stopOnce = (p: Proc) => {
    if (seen.has(idOf(p))) return;
    seen.set(idOf(p), p);
    signal(p, "SIGSTOP");
  };
  const strangers = new Set<number>();
  for (let round = 0, before = -1; round < ROUNDS && now() < end && before < seen.size; round++) {
    before = seen.size;
    look({ strangers, onMember: stopOnce }).targets.forEach(stopOnce);
  }
  for (const p of seen.values()) signal(p, "SIGKILL");
  // A look may take long on a busy machine, so patience is counted in looks as well as in time.
  for (let looks = 1; ; looks++) {
    const strike = (p: Proc) => {
      seen.set(idOf(p), p);
      signal(p, "SIGKILL");
    };
    const { whole, targets: left } = look({ onMember: strike });
    left.forEach(strike);
    if ((whole && left.length === 0) || (looks >= MIN_LOOKS && now() >= end)) return report(seen, left, refused, quarry.look(), options.takeSuspects());
    await pause(STEP_MS);
  }
}

function report(seen: Map<string, Proc>, left: Proc[], refused: Set<string>, last: Sighting, taken: boolean): KillResult {
  const name = (p: Proc) => `${p.pid} (${p.comm}, state ${p.state}${refused.has(idOf(p)) ? ", signal refused" : ""})`;
  const detail: string[] = [];
  if (left.length > 0) detail.push(`still there: ${left.slice(0, 8).map(name).join(", ")}`);
  if (!last.whole) detail.push("too many processes come and go to look at them all");
  const open = taken ? [] : last.suspects;
  if (open.length > 0) detail.push(`unmarked processes of the same user, started since, may belong to it: ${open.slice(0, 8).map(name).join(", ")}`);
  return {
    found: seen.size,
    killed: seen.size - left.length,
    remaining: left.length,
    verified: left.length === 0 && open.length === 0 && last.whole,
    detail: detail.join("; "),
  };
}
