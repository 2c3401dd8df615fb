import { describe, expect, it } from "vitest";
import { hunt, Quarry, type Marks } from "./hunt";
import { ProcFs, type Proc } from "./procfs";

interface Fake extends Proc {
  groups: number[];
  uid: number;
  mark?: string;
  /** Signals it survives. */
  immortal?: boolean;
}

/** A process table in memory. */
class Table extends ProcFs {
  readonly all = new Map<number, Fake>();
  readonly sent: [number, string][] = [];
  onLook: () => void = () => undefined;

  add(pid: number, p: Partial<Fake> = {}): Fake {
    const f: Fake = { pid, start: pid * 10, comm: `p${pid}`, state: "S", ppid: 1, pgrp: pid, session: pid, groups: [], uid: 1001, ...p };
    this.all.set(pid, f);
    return f;
  }
  override pids() {
    this.onLook();
    return [...this.all.keys()];
  }
  override stat(pid: number) {
    return this.all.get(pid);
  }
  override status(pid: number) {
    const p = this.all.get(pid);
    return p && { uid: p.uid, groups: p.groups };
  }
  override env(pid: number) {
    return this.all.get(pid)?.mark;
  }
  send = (pid: number, signal: string) => {
    this.sent.push([pid, signal]);
    const p = this.all.get(pid);
    if (p?.immortal) throw Object.assign(new Error("no"), { code: "EPERM" });
    if (p && signal === "SIGSTOP") p.state = "T";
    if (p && signal === "SIGKILL") p.state = "Z";
  };
}

const OWN = new Set([1, 2]);
const LEADER = { pid: 100, start: 1000 };
const setup = (marks: Partial<Marks> = {}) => {
  const t = new Table();
  t.add(1, { uid: 0 });
  t.add(2, { uid: 0 });
  t.add(100, { ppid: 2, mark: "m" });
  const quarry = new Quarry({ env: "m", leader: LEADER, ...marks }, t, OWN, 1001);
  const run = (takeSuspects = false) => hunt(quarry, t, { takeSuspects: () => takeSuspects, send: t.send, pause: async () => undefined, deadlineMs: 50 });
  const members = () => quarry.look().members.map((p) => p.pid);
  return { t, quarry, run, members };
};

describe("Quarry", () => {
  it.each<[string, Partial<Fake>, Partial<Marks>]>([
    ["its parent", { ppid: 100 }, {}],
    ["its process group", { pgrp: 100 }, {}],
    ["its session", { session: 100 }, {}],
    ["the mark in its environment", { mark: "m" }, {}],
    ["the group that only this command has", { groups: [7, 4711] }, { gid: 4711 }],
  ])("knows a process by %s", (_, p, marks) => {
    const { t, members } = setup(marks);
    t.add(200, p);
    expect(members()).toContain(200);
  });

  it("finds grandchildren through a parent that has no mark", () => {
    const { t, members } = setup();
    t.add(200, { ppid: 100 });
    t.add(201, { ppid: 200 });
    expect(members()).toEqual([100, 200, 201]);
  });

  it("remembers a descendant after its parent is gone", () => {
    const { t, members } = setup();
    t.add(200, { ppid: 100 });
    members();
    Object.assign(t.all.get(200)!, { ppid: 1 });
    t.all.delete(100);
    expect(members()).toEqual([200]);
  });

  it("leaves alone another command, the worker, zombies, and a stranger that got the leader's pid", () => {
    const { t, members } = setup({ gid: 4711 });
    t.add(100, { start: 9999, ppid: 1 }); // reused pid
    t.add(200, { mark: "other", groups: [4712] });
    t.add(201, { mark: "m", groups: [4711], state: "Z" });
    expect(members()).toEqual([]);
    const traces = setup();
    traces.t.add(100, { start: 9999, ppid: 1 });
    traces.t.add(200, { mark: "other" });
    traces.t.add(201, { mark: "m", state: "Z" });
    traces.t.add(202, { pgrp: 100, start: 10_000 });
    expect(traces.members()).toEqual([]);
  });

  it("suspects unmarked younger processes of the same user only where marks can be shed", () => {
    const suspects = (marks: Partial<Marks>) => {
      const { t, quarry } = setup(marks);
      t.add(200);
      t.add(50, { start: 10 }); // older than the command
      t.add(201, { uid: 33 });
      t.add(202, { mark: "other" });
      t.add(203, { ppid: 2 }); // the worker's own child
      return quarry.look().suspects.map((p) => p.pid);
    };
    expect(suspects({})).toEqual([200]);
    expect(suspects({ gid: 4711 })).toEqual([]);
  });
});

describe("hunt", () => {
  it("stops all before it kills any, and says what it found", async () => {
    const { t, run } = setup();
    t.add(200, { ppid: 100 });
    expect(await run()).toEqual({ found: 2, killed: 2, remaining: 0, verified: true, detail: "" });
    expect(t.sent.slice(0, 4)).toEqual([[100, "SIGSTOP"], [200, "SIGSTOP"], [100, "SIGKILL"], [200, "SIGKILL"]]);
  });

  it("goes on until a look finds nothing new, so a fork cannot outrun it", async () => {
    const { t, run } = setup();
    let next = 300;
    // Until the newest is stopped it forks once per look, each time into a new session.
    t.onLook = () => {
      const newest = t.all.get(next - 1) ?? t.all.get(100)!;
      if (next < 310 && newest.state === "S") t.add(next, { ppid: newest.pid, start: 1000 + next++ });
    };
    const result = await run();
    expect(result).toMatchObject({ remaining: 0, verified: true });
    expect([...t.all.values()].filter((p) => p.pid >= 100 && p.state !== "Z")).toEqual([]);
  });

  it("is not deceived by a process that hands over to a child between the listing and the look", async () => {
    const { t, run } = setup({ gid: 4711 });
    t.all.get(100)!.groups = [4711];
    let current = 400;
    t.add(current, { groups: [4711], ppid: 1 });
    const status = t.status.bind(t);
    // As soon as anyone looks at it, it has ended, and a child that no listing has shown yet is there; thirty times.
    t.status = (pid) => {
      if (pid !== current || current >= 430) return status(pid);
      t.all.delete(pid);
      t.add(++current, { groups: [4711], ppid: 1 });
      return undefined;
    };
    expect(await run()).toMatchObject({ remaining: 0, verified: true });
    expect(t.all.get(430)?.state).toBe("Z");
  });

  it("names what does not die and does not call it verified", async () => {
    const { t, run } = setup();
    t.add(200, { ppid: 100, state: "D", immortal: true });
    expect(await run()).toMatchObject({ found: 2, killed: 1, remaining: 1, verified: false, detail: "still there: 200 (p200, state D, signal refused)" });
  });

  it("reports suspects as unverified, or kills them when they can be nobody else's", async () => {
    const a = setup();
    a.t.add(200);
    expect(await a.run(false)).toMatchObject({ found: 1, verified: false, detail: expect.stringContaining("200 (p200, state S)") });
    const b = setup();
    b.t.add(200);
    expect(await b.run(true)).toMatchObject({ found: 2, killed: 2, verified: true });
  });

  it("does not signal a pid that has passed to another process since the look", async () => {
    const { t, run } = setup();
    t.add(200, { mark: "m" });
    const real = t.stat.bind(t);
    let reads = 0;
    t.stat = (pid) => (pid === 200 && ++reads > 1 ? { ...real(200)!, start: 5 } : real(pid));
    t.onLook = () => reads > 1 && t.all.delete(200);
    await run();
    expect(t.sent.map(([pid]) => pid)).not.toContain(200);
  });
});
