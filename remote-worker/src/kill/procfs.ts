import { readFileSync, readdirSync } from "node:fs";

/** One process as /proc shows it. `start` is its start time in clock ticks since boot: with the pid it names a process for good. */
export interface Proc {
  pid: number;
  start: number;
  comm: string;
  state: string;
  ppid: number;
  pgrp: number;
  session: number;
}

export interface Status {
  uid: number;
  groups: number[];
}

/** The key of a process that survives reuse of its pid. */
export const idOf = (p: { pid: number; start: number }): string => `${p.pid}:${p.start}`;

/** Zombies and dead entries hold no memory and run nothing; they only wait to be reaped. */
export const isDead = (p: Proc): boolean => p.state === "Z" || p.state === "X" || p.state === "x";

/** Parses /proc/PID/stat. The name stands in parentheses and may itself contain parentheses, blanks and newlines. */
export function parseStat(text: string): Proc | undefined {
  const open = text.indexOf("(");
  const close = text.lastIndexOf(")");
  if (open < 0 || close < open) return undefined;
  const f = text.slice(close + 2).split(" ");
  const n = (i: number) => Number(f[i]);
  const p = { pid: Number(text.slice(0, open)), comm: text.slice(open + 1, close), state: f[0] ?? "?", ppid: n(1), pgrp: n(2), session: n(3), start: n(19) };
  return [p.pid, p.ppid, p.pgrp, p.session, p.start].every(Number.isFinite) ? p : undefined;
}

/** Parses the lines of /proc/PID/status that we use; `uid` is the real one. */
export function parseStatus(text: string): Status | undefined {
  const uid = /^Uid:\s+(\d+)/m.exec(text)?.[1];
  const groups = /^Groups:[ \t]*(.*)$/m.exec(text)?.[1];
  if (uid === undefined || groups === undefined) return undefined;
  return { uid: Number(uid), groups: groups.split(/\s+/).filter((g) => g !== "").map(Number) };
}

/** The value of one variable in the bytes of /proc/PID/environ. */
export function environValue(environ: string, name: string): string | undefined {
  for (const entry of environ.split("\0")) if (entry.startsWith(`${name}=`)) return entry.slice(name.length + 1);
  return undefined;
}

/** Capability numbers (linux/capability.h) in a hex mask such as CapEff. */
export const CAP = { KILL: 5, SETGID: 6, SETUID: 7, SETPCAP: 8, SYS_ADMIN: 21 } as const;
export function hasCap(status: string, cap: number, set = "CapEff"): boolean {
  const hex = new RegExp(`^${set}:\\s*([0-9a-fA-F]+)`, "m").exec(status)?.[1];
  return hex !== undefined && ((BigInt(`0x${hex}`) >> BigInt(cap)) & 1n) === 1n;
}

/** Read access to a mounted procfs. Every method answers undefined for a process that is gone. */
export class ProcFs {
  constructor(readonly root = "/proc") {}

  pids(): number[] {
    return readdirSync(this.root).filter((d) => /^\d+$/.test(d)).map(Number);
  }

  stat(pid: number): Proc | undefined {
    const text = this.text(pid, "stat");
    return text === undefined ? undefined : parseStat(text);
  }

  status(pid: number): Status | undefined {
    const text = this.text(pid, "status");
    return text === undefined ? undefined : parseStatus(text);
  }

  /** The variable's value, undefined when it has none, `unreadable` when we may not look. */
  env(pid: number, name: string): string | undefined | { unreadable: true } {
    try {
      return environValue(readFileSync(`${this.root}/${pid}/environ`, "latin1"), name);
    } catch (e) {
      const code = (e as NodeJS.ErrnoException).code;
      return code === "EACCES" || code === "EPERM" ? { unreadable: true } : undefined;
    }
  }

  /** The pid handed out last, from the fifth field of loadavg; 0 when it cannot be told. */
  lastPid(): number {
    try {
      return Number(readFileSync(`${this.root}/loadavg`, "utf8").trim().split(" ")[4]) || 0;
    } catch {
      return 0;
    }
  }

  alive(id: { pid: number; start: number }): boolean {
    const p = this.stat(id.pid);
    return p !== undefined && p.start === id.start && !isDead(p);
  }

  private text(pid: number, file: string): string | undefined {
    try {
      return readFileSync(`${this.root}/${pid}/${file}`, "utf8");
    } catch {
      return undefined;
    }
  }
}
