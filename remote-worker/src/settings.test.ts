import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { SettingError } from "@dialout/common";
import { commandEnv, accountOf } from "./run/env";
import { masks, powersOf } from "./run/isolation";
import { readSettings, readToken } from "./settings";

const dir = mkdtempSync(path.join(tmpdir(), "worker-settings-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const write = (name: string, text: string) => {
  const file = path.join(dir, name);
  writeFileSync(file, text);
  return file;
};
const ENV = { SANDBOX_TOKEN: "t0ken", HOME: dir };
const read = (env: Record<string, string>) => readSettings({ ...ENV, ...env });

describe("readSettings", () => {
  it("has upstream's defaults", () => {
    expect(read({})).toMatchObject({ relayAddr: "localhost:8443", sandboxId: "sbx-laptop-1", capacity: 4, queueMax: 64, trust: "untrusted", image: "", graceMs: 30_000, tls: undefined, isolation: "auto" });
  });

  it.each([
    [{ SANDBOX_TOKEN: "" }, "SANDBOX_TOKEN"],
    [{ SANDBOX_TOKEN: "a b" }, "SANDBOX_TOKEN"],
    [{ SANDBOX_TOKEN_FILE: "/etc/hostname" }, "SANDBOX_TOKEN_FILE and SANDBOX_TOKEN"],
    [{ SANDBOX_TOKEN: "", SANDBOX_TOKEN_FILE: "/does/not/exist" }, "SANDBOX_TOKEN_FILE"],
    [{ RELAY_ADDR: "localhost" }, "RELAY_ADDR"],
    [{ SANDBOX_ID: "a b" }, "SANDBOX_ID"],
    [{ RELAY_TLS: "true" }, "RELAY_TLS"],
    [{ RELAY_TLS_CA_FILE: "/etc/hostname" }, "RELAY_TLS_CA_FILE"],
    [{ RELAY_TLS: "1", RELAY_TLS_CA_FILE: "/etc/hostname" }, "RELAY_TLS_CA_FILE"],
    [{ RELAY_TLS: "1", RELAY_TLS_SERVER_NAME: "a b" }, "RELAY_TLS_SERVER_NAME"],
    [{ WORKER_MAX_CONCURRENT: "0" }, "WORKER_MAX_CONCURRENT"],
    [{ WORKER_MAX_CONCURRENT: "four" }, "WORKER_MAX_CONCURRENT"],
    [{ WORKER_GRACE_MS: "-1" }, "WORKER_GRACE_MS"],
    [{ WORKER_QUEUE_MAX: "x" }, "WORKER_QUEUE_MAX"],
    [{ WORKER_OUTPUT_CAP_BYTES: "1MB" }, "WORKER_OUTPUT_CAP_BYTES"],
    [{ WORKER_METRICS_PORT: "70000" }, "WORKER_METRICS_PORT"],
    [{ WORKER_LEFTOVERS: "maybe" }, "WORKER_LEFTOVERS"],
    [{ SANDBOX_ISOLATION: "docker" }, "SANDBOX_ISOLATION"],
    [{ SANDBOX_EXEC_USER: "nobody" }, "SANDBOX_EXEC_USER"],
    [{ SANDBOX_EXEC_USER: "99999999999" }, "SANDBOX_EXEC_USER"],
    [{ SANDBOX_CWD: "relative" }, "SANDBOX_CWD"],
    [{ SANDBOX_CWD: "/does/not/exist" }, "SANDBOX_CWD"],
    [{ SANDBOX_LABELS: "a" }, "SANDBOX_LABELS"],
    [{ SANDBOX_ENV_PASS: "SANDBOX_TOKEN" }, "SANDBOX_ENV_PASS"],
  ] as [Record<string, string>, string][])("refuses %j by name", (env, name) => {
    expect(() => read(env)).toThrow(SettingError);
    expect(() => read(env)).toThrow(new RegExp(`^${name}`));
  });

  it("shows no token in an error", () => {
    expect(() => read({ SANDBOX_TOKEN: "hunter2 x" })).toThrow(/^(?!.*hunter2)/);
  });

  it("reads labels, user and metrics", () => {
    expect(read({ SANDBOX_LABELS: "os=rhel, team=a", SANDBOX_EXEC_USER: "1001", WORKER_METRICS_PORT: "0" })).toMatchObject({ labels: { os: "rhel", team: "a" }, execUser: { uid: 1001, gid: 1001 }, metrics: { port: 0, host: "127.0.0.1" } });
  });

  it("keeps the journal per sandbox id under the user's state folder", () => {
    expect(read({ XDG_STATE_HOME: path.join(dir, "xdg"), SANDBOX_ID: "w" }).stateDir.path).toMatch(/(xdg\/dialout-worker|\/var\/lib\/dialout)\/w$/);
    expect(read({ WORKER_STATE_DIR: "/srv/x" }).stateDir).toEqual({ path: "/srv/x", explicit: true });
  });
});

describe("readToken", () => {
  it.each([["a\n", "a"], ["a", "a"], ["a\r\n", "a"]])("of %j is %j", (text, token) => {
    expect(readToken({ kind: "file", path: write("token", text) })).toBe(token);
  });
  it.each(["", "\n", "a b\n", "a\n\n"])("refuses %j", (text) => {
    expect(() => readToken({ kind: "file", path: write("token", text) })).toThrow(SettingError);
  });
  it("sees a rotated file", () => {
    const source = { kind: "file", path: write("token", "one\n") } as const;
    expect(readToken(source)).toBe("one");
    write("token", "two\n");
    expect(readToken(source)).toBe("two");
  });
});

describe("commandEnv", () => {
  it("keeps a short list and nothing of the worker's", () => {
    const env = commandEnv({ PATH: "/bin", LANG: "C", LC_ALL: "C", SANDBOX_TOKEN: "s", SH_RELAY_TOKEN: "s", AWS_SECRET_ACCESS_KEY: "s", npm_config_x: "s", NODE_OPTIONS: "s", EXTRA: "e" }, ["EXTRA"], undefined, "/");
    expect(env).toEqual({ PATH: "/bin", LANG: "C", LC_ALL: "C", EXTRA: "e" });
  });
  it("gives another user a home of its own", () => {
    expect(commandEnv({ HOME: "/root", USER: "root" }, [], { uid: 4_000_000, gid: 1 }, "/work")).toMatchObject({ HOME: "/work", USER: "4000000" });
    expect(accountOf("root:x:0:0:r:/root:/bin/sh\nsandbox:x:1001:1001::/home/s:/bin/sh\n", 1001)).toEqual({ name: "sandbox", home: "/home/s" });
  });
});

describe("masks", () => {
  const state = path.join(dir, "state");
  mkdirSync(state);
  const of = (token: string) => masks({ token: { kind: "file", path: token }, stateDir: { path: state, explicit: true } });

  it("hides the file alone in a folder that others share", () => {
    const shared = path.join(dir, "shared");
    mkdirSync(shared, { mode: 0o755 });
    writeFileSync(path.join(shared, "token"), "x");
    expect(of(path.join(shared, "token"))).toEqual([path.join(shared, "token"), state]);
  });
  it("hides the whole folder where it is private, or where files are swapped behind a link", () => {
    const own = path.join(dir, "own");
    mkdirSync(own, { mode: 0o700 });
    writeFileSync(path.join(own, "token"), "x");
    expect(of(path.join(own, "token"))).toContain(own);
    const swapped = path.join(dir, "swapped");
    mkdirSync(path.join(swapped, "..v1"), { recursive: true, mode: 0o755 });
    writeFileSync(path.join(swapped, "..v1", "token"), "x");
    symlinkSync("..v1/token", path.join(swapped, "token"));
    expect(of(path.join(swapped, "token"))).toEqual([path.join(swapped, "..v1", "token"), swapped, state]);
  });
});

it("powersOf tells what a container leaves to root", () => {
  const status = (hex: string) => `CapEff:\t${hex}\n`;
  expect(powersOf(status("00000000000000e0"), 0)).toEqual({ root: true, setGroups: true, setIds: true, admin: false });
  expect(powersOf(status("000001ffffffffff"), 0).admin).toBe(true);
  expect(powersOf(status("0000000000000000"), 1001)).toEqual({ root: false, setGroups: false, setIds: false, admin: false });
});
