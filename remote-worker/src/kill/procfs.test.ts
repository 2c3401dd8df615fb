import { describe, expect, it } from "vitest";
import { CAP, environValue, hasCap, parseStat, parseStatus } from "./procfs";

describe("parseStat", () => {
  const tail = "S 10 20 30 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 424242 1000 2000";
  it.each(["bash", "a b", "a) S 1 (b", "(", ")", "x\ny"])("reads the fields after a name like %j", (comm) => {
    expect(parseStat(`77 (${comm}) ${tail}`)).toEqual({ pid: 77, comm, state: "S", ppid: 10, pgrp: 20, session: 30, start: 424242 });
  });
  it.each(["", "77", "77 (bash", "x (bash) S 1", "77 (bash) S"])("takes no part of a line like %j", (text) => {
    expect(parseStat(text)).toBeUndefined();
  });
});

describe("parseStatus", () => {
  it("reads the real uid and the groups", () => {
    expect(parseStatus("Name:\tx\nUid:\t1001\t0\t0\t0\nGid:\t1\t1\t1\t1\nGroups:\t1001 1983670524 \nNSpid:\t3\n")).toEqual({ uid: 1001, groups: [1001, 1983670524] });
  });
  it("knows an empty group list", () => {
    expect(parseStatus("Uid:\t0\t0\t0\t0\nGroups:\t \nNSpid:\t3\n")?.groups).toEqual([]);
    expect(parseStatus("Uid:\t0\t0\t0\t0\nGroups:\t\nNSpid:\t3\n")?.groups).toEqual([]);
  });
  it("is undefined for a process that vanished in mid-read", () => {
    expect(parseStatus("Name:\tx\n")).toBeUndefined();
  });
});

it("environValue finds a whole name only", () => {
  const env = "XMARK=no\0MARK=yes=1\0MARKER=no\0";
  expect(environValue(env, "MARK")).toBe("yes=1");
  expect(environValue(env, "MAR")).toBeUndefined();
});

it("hasCap reads single bits of the mask", () => {
  const status = "CapPrm:\t00000000000000ff\nCapEff:\t0000000000200080\n";
  expect([CAP.SETUID, CAP.SYS_ADMIN, CAP.KILL, CAP.SETPCAP].map((c) => hasCap(status, c))).toEqual([true, true, false, false]);
  expect(hasCap(status, CAP.KILL, "CapPrm")).toBe(true);
  expect(hasCap("", CAP.KILL)).toBe(false);
});
