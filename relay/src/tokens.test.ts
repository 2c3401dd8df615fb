import { SettingError, Settings } from "@dialout/common";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { identifyCaller, noWorkerTokens, readExecTokens, readWorkerTokens, refuseSharedTokens, workerMayAttach, workerTokensFor } from "./tokens";

const dir = mkdtempSync(path.join(tmpdir(), "relay-tokens-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const worker = (env: Record<string, string>) => readWorkerTokens(new Settings(env), env);
const exec = (env: Record<string, string>) => readExecTokens(new Settings(env), env);
const none = exec({ SH_RELAY_EXEC_TOKEN: "e" });

describe("worker tokens", () => {
  it.each([
    ["global", { SH_RELAY_TOKEN: "g" }, "sbx-1", ["g"]],
    ["global and previous", { SH_RELAY_TOKEN: "g", SH_RELAY_TOKEN_PREVIOUS: "p" }, "sbx-1", ["g", "p"]],
    ["own before global", { SH_RELAY_TOKEN: "g", "SH_RELAY_TOKEN_sbx-1": "o" }, "sbx-1", ["o"]],
    ["another id's is not mine", { SH_RELAY_TOKEN: "g", "SH_RELAY_TOKEN_sbx-2": "o" }, "sbx-1", ["g"]],
    ["an empty override refuses", { SH_RELAY_TOKEN: "g", "SH_RELAY_TOKEN_sbx-1": "" }, "sbx-1", []],
    ["nothing configured refuses", {}, "sbx-1", []],
    ["an empty global refuses", { SH_RELAY_TOKEN: "" }, "sbx-1", []],
    ["an id named like a setting has no override", { SH_RELAY_TOKEN: "g", SH_RELAY_TOKEN_PREVIOUS: "p" }, "PREVIOUS", ["g", "p"]],
  ])("%s", (_, env, id, expected) => {
    expect(workerTokensFor(worker(env as Record<string, string>), id)).toEqual(expected);
  });

  it.each([
    ["one line", "f\n", ["f"]],
    ["no line end", "f", ["f"]],
    ["two lines: new and previous", "f\nold\n", ["f", "old"]],
    ["Windows line end", "f\r\n", ["f"]],
    ["empty", "", []],
    ["only a line end", "\n", []],
    ["white space inside", "a b\n", []],
    ["three lines", "a\nb\nc\n", []],
  ])("a file with %s", (_, text, expected) => {
    writeFileSync(path.join(dir, "sbx-f"), text);
    expect(workerTokensFor(worker({ SH_RELAY_TOKEN: "g", SH_RELAY_TOKEN_DIR: dir }), "sbx-f")).toEqual(expected);
  });

  it("falls through to the variables only when there is no file, not when it cannot be read", () => {
    const tokens = worker({ SH_RELAY_TOKEN: "g", SH_RELAY_TOKEN_DIR: dir });
    expect(workerTokensFor(tokens, "no-file")).toEqual(["g"]);
    expect(workerTokensFor(tokens, "no-file", () => { throw Object.assign(new Error(), { code: "EACCES" }); })).toEqual([]);
  });

  it("never lets an exec token in, wherever it came from", () => {
    expect(workerMayAttach(worker({ SH_RELAY_TOKEN: "g", SH_RELAY_TOKEN_DIR: dir }), none, "x", "e", () => "e")).toBe(false);
  });

  it.each([["g", true], ["p", true], ["x", false], ["", false], [undefined, false]])("presenting %j: %s", (presented, ok) => {
    expect(workerMayAttach(worker({ SH_RELAY_TOKEN: "g", SH_RELAY_TOKEN_PREVIOUS: "p" }), none, "sbx-1", presented)).toBe(ok);
  });

  it("knows when nobody can attach", () => {
    expect(noWorkerTokens(worker({}))).toBe(true);
    expect(noWorkerTokens(worker({ "SH_RELAY_TOKEN_sbx-1": "" }))).toBe(true);
    expect(noWorkerTokens(worker({ "SH_RELAY_TOKEN_sbx-1": "o" }))).toBe(false);
  });
});

describe("exec tokens", () => {
  const env = { SH_RELAY_EXEC_TOKEN: "e", SH_RELAY_EXEC_TOKEN_PREVIOUS: "old", SH_RELAY_EXEC_TOKEN_harness: "h" };

  it.each([["e", "default"], ["old", "default"], ["h", "harness"], ["x", undefined], ["", undefined], [undefined, undefined]])("%j is caller %s", (presented, caller) => {
    expect(identifyCaller(exec(env), presented)).toBe(caller);
  });

  it("lets anybody in when switched off, and still knows whom it knows", () => {
    const off = exec({ ...env, SH_RELAY_EXEC_AUTH: "off" });
    expect(identifyCaller(off, undefined)).toBe("anonymous");
    expect(identifyCaller(off, "h")).toBe("harness");
    expect(() => exec({ SH_RELAY_EXEC_AUTH: "off" })).not.toThrow();
  });
});

describe("refused at start", () => {
  const read = (env: Record<string, string>) => () => refuseSharedTokens(worker(env), exec(env));

  it.each([
    ["no exec token", {}, /SH_RELAY_EXEC_TOKEN is not set/],
    ["exec = worker token", { SH_RELAY_TOKEN: "a", SH_RELAY_EXEC_TOKEN: "a" }, /SH_RELAY_TOKEN equals the exec token/],
    ["exec = one worker's token", { "SH_RELAY_TOKEN_sbx-1": "a", SH_RELAY_EXEC_TOKEN: "a" }, /SH_RELAY_TOKEN_sbx-1 equals/],
    ["a caller's = previous worker token", { SH_RELAY_TOKEN: "b", SH_RELAY_TOKEN_PREVIOUS: "a", SH_RELAY_EXEC_TOKEN: "e", SH_RELAY_EXEC_TOKEN_x: "a" }, /SH_RELAY_TOKEN_PREVIOUS equals/],
    ["two callers, one token", { SH_RELAY_EXEC_TOKEN: "e", SH_RELAY_EXEC_TOKEN_x: "e" }, /SH_RELAY_EXEC_TOKEN_x equals/],
    ["a line end in a token", { SH_RELAY_EXEC_TOKEN: "secret\n" }, /SH_RELAY_EXEC_TOKEN holds white space/],
    ["previous without present", { SH_RELAY_EXEC_TOKEN: "e", SH_RELAY_TOKEN_PREVIOUS: "p" }, /SH_RELAY_TOKEN_PREVIOUS is set but SH_RELAY_TOKEN is not/],
    ["an empty caller token", { SH_RELAY_EXEC_TOKEN: "e", SH_RELAY_EXEC_TOKEN_x: "" }, /SH_RELAY_EXEC_TOKEN_x is empty/],
    ["an impossible id", { SH_RELAY_EXEC_TOKEN: "e", "SH_RELAY_TOKEN_-x": "t" }, /SH_RELAY_TOKEN_-x names no valid sandbox id/],
    ["a token folder that is none", { SH_RELAY_EXEC_TOKEN: "e", SH_RELAY_TOKEN_DIR: "/nonexistent" }, /SH_RELAY_TOKEN_DIR="\/nonexistent" must be a folder/],
    ["an unknown switch value", { SH_RELAY_EXEC_AUTH: "no" }, /SH_RELAY_EXEC_AUTH="no" must be one of on, off/],
  ])("%s", (_, env, message) => {
    expect(read(env as Record<string, string>)).toThrow(SettingError);
    expect(read(env as Record<string, string>)).toThrow(message);
  });

  it("shows no token in any of its errors", () => {
    try {
      read({ SH_RELAY_TOKEN: "hunter2", SH_RELAY_EXEC_TOKEN: "hunter2" })();
      expect.unreachable();
    } catch (e) {
      expect((e as Error).message).not.toContain("hunter2");
    }
  });
});
