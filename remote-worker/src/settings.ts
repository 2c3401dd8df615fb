import { existsSync, readFileSync, statSync, constants, accessSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { X509Certificate } from "node:crypto";
import { SANDBOX_ID, SANDBOX_ID_RULE, SettingError, Settings, show, type Env } from "@dialout/common";

export type IsolationChoice = "auto" | "pidns" | "user" | "none";

export interface ExecUser {
  uid: number;
  gid: number;
}

/** Everything the worker is told from outside, checked. Times in ms, sizes in bytes. */
export interface WorkerSettings {
  relayAddr: string;
  sandboxId: string;
  /** Where the token comes from. It is read again for every attach, so that a rotated file takes effect. */
  token: { kind: "value"; value: string } | { kind: "file"; path: string };
  tls?: { caFile?: string; serverName?: string };
  capacity: number;
  queueMax: number;
  graceMs: number;
  drainMs: number;
  /** Cap per stream for streamed output; 0 = none (held output is always capped, see HELD_OUTPUT_CAP). */
  outputCap: number;
  metrics?: { port: number; host: string };
  /** `explicit` = the user named it, so a busy one is refused instead of stepped around. */
  stateDir: { path: string; explicit: boolean };
  isolation: IsolationChoice;
  leftovers: "kill" | "keep";
  execUser?: ExecUser;
  cwd: { path: string; explicit: boolean };
  envPass: string[];
  image: string;
  trust: string;
  labels: Record<string, string>;
}

const INT32 = 2_147_483_647;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function readSettings(env: Env): WorkerSettings {
  const s = new Settings(env);
  const sandboxId = s.string("SANDBOX_ID", "sbx-laptop-1");
  if (!SANDBOX_ID.test(sandboxId)) {
    throw new SettingError(`SANDBOX_ID=${show(sandboxId)} must be ${SANDBOX_ID_RULE}. For example: SANDBOX_ID=sbx-laptop-1`);
  }
  const metricsPort = s.raw("WORKER_METRICS_PORT") === undefined ? undefined : s.port("WORKER_METRICS_PORT", 9464);
  return {
    relayAddr: s.hostPort("RELAY_ADDR", "localhost:8443"),
    sandboxId,
    token: tokenSource(s),
    tls: tlsSettings(s),
    capacity: s.int("WORKER_MAX_CONCURRENT", 4, { min: 1, max: 1024 }),
    queueMax: s.int("WORKER_QUEUE_MAX", 64, { min: 0, max: 100_000 }),
    graceMs: s.int("WORKER_GRACE_MS", 30_000, { min: 0, max: INT32 }),
    drainMs: s.int("WORKER_DRAIN_MS", 8_000, { min: 0, max: INT32 }),
    outputCap: s.int("WORKER_OUTPUT_CAP_BYTES", 0, { min: 0, max: Number.MAX_SAFE_INTEGER }),
    metrics: metricsPort === undefined ? undefined : { port: metricsPort, host: s.string("WORKER_METRICS_HOST", "127.0.0.1") },
    stateDir: stateDir(s, sandboxId),
    isolation: s.oneOf("SANDBOX_ISOLATION", ["auto", "pidns", "user", "none"] as const, "auto"),
    leftovers: s.oneOf("WORKER_LEFTOVERS", ["kill", "keep"] as const, "kill"),
    execUser: execUser(s.raw("SANDBOX_EXEC_USER")),
    cwd: workingDirectory(s.raw("SANDBOX_CWD")),
    envPass: list(s.raw("SANDBOX_ENV_PASS")).map((name) => {
      if (ENV_NAME.test(name) && !isSecretName(name)) return name;
      throw new SettingError(`SANDBOX_ENV_PASS=${show(name)} must be names of variables separated by commas, none of them the worker's own. For example: SANDBOX_ENV_PASS=JAVA_HOME,HTTP_PROXY`);
    }),
    image: s.string("SANDBOX_IMAGE", ""),
    trust: s.string("SANDBOX_TRUST", "untrusted"),
    labels: labels(s.raw("SANDBOX_LABELS")),
  };
}

/** Names that never reach a command: the worker's own settings, whatever they hold. */
export function isSecretName(name: string): boolean {
  return /^(SANDBOX_|WORKER_|RELAY_|SH_|DIALOUT_|npm_)/.test(name);
}

function tokenSource(s: Settings): WorkerSettings["token"] {
  const file = s.raw("SANDBOX_TOKEN_FILE");
  const value = s.raw("SANDBOX_TOKEN");
  if (file !== undefined && value !== undefined) {
    throw new SettingError("SANDBOX_TOKEN_FILE and SANDBOX_TOKEN are both set: give one of them. For example: unset SANDBOX_TOKEN");
  }
  if (file !== undefined) {
    const source = { kind: "file", path: path.resolve(file) } as const;
    readToken(source);
    return source;
  }
  if (value === undefined) {
    throw new SettingError("SANDBOX_TOKEN is not set: the relay accepts no worker without one. Set it (or SANDBOX_TOKEN_FILE=PATH), for example: SANDBOX_TOKEN=$(openssl rand -hex 16)");
  }
  checkToken(value, "SANDBOX_TOKEN");
  return { kind: "value", value };
}

/** The token as it is now. Throws a SettingError that names the variable and never shows the value. */
export function readToken(source: WorkerSettings["token"]): string {
  if (source.kind === "value") return source.value;
  let text: string;
  try {
    text = readFileSync(source.path, "utf8");
  } catch (e) {
    throw new SettingError(`SANDBOX_TOKEN_FILE=${show(source.path)} cannot be read (${(e as NodeJS.ErrnoException).code}). Write the token into that file, readable by the worker's user`);
  }
  const token = text.replace(/\r?\n$/, "");
  if (token === "") throw new SettingError(`SANDBOX_TOKEN_FILE=${show(source.path)} is empty: write the token into it, one line`);
  checkToken(token, "SANDBOX_TOKEN_FILE");
  return token;
}

function checkToken(token: string, name: string): void {
  if (!/^[\x21-\x7e]+$/.test(token)) throw new SettingError(`${name} must hold one token of printable ASCII without spaces (value not shown). For example: openssl rand -hex 16`);
}

function tlsSettings(s: Settings): WorkerSettings["tls"] {
  const on = s.oneOf("RELAY_TLS", ["0", "1"] as const, "0") === "1";
  const caFile = s.raw("RELAY_TLS_CA_FILE");
  const serverName = s.raw("RELAY_TLS_SERVER_NAME");
  if (!on) {
    for (const [name, v] of [["RELAY_TLS_CA_FILE", caFile], ["RELAY_TLS_SERVER_NAME", serverName]] as const) {
      if (v !== undefined) throw new SettingError(`${name} is set while RELAY_TLS is 0: the token would travel in clear. Set RELAY_TLS=1, or unset ${name}`);
    }
    return undefined;
  }
  if (caFile !== undefined) readCa(caFile);
  if (serverName !== undefined && !/^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(serverName)) {
    throw new SettingError(`RELAY_TLS_SERVER_NAME=${show(serverName)} must be a DNS name. For example: RELAY_TLS_SERVER_NAME=relay.example.com`);
  }
  return { caFile, serverName };
}

/** The CA bundle's bytes, checked to hold at least one certificate. */
export function readCa(file: string): Buffer {
  const rule = "must be a PEM file with at least one certificate. For example: RELAY_TLS_CA_FILE=/etc/dialout/ca.pem";
  try {
    const pem = readFileSync(file);
    new X509Certificate(pem);
    return pem;
  } catch (e) {
    throw new SettingError(`RELAY_TLS_CA_FILE=${show(file)} ${rule} (${(e as NodeJS.ErrnoException).code ?? (e as Error).message})`);
  }
}

function stateDir(s: Settings, sandboxId: string): WorkerSettings["stateDir"] {
  const given = s.raw("WORKER_STATE_DIR");
  if (given !== undefined) return { path: path.resolve(given), explicit: true };
  const home = s.raw("HOME");
  const xdg = s.raw("XDG_STATE_HOME") ?? (home === undefined ? undefined : path.join(home, ".local/state"));
  if (writable("/var/lib/dialout", true)) return { path: path.join("/var/lib/dialout", sandboxId), explicit: false };
  if (xdg !== undefined && writable(path.resolve(xdg), false)) return { path: path.join(path.resolve(xdg), "dialout-worker", sandboxId), explicit: false };
  return { path: path.join(tmpdir(), `dialout-worker-${process.getuid?.() ?? 0}`, sandboxId), explicit: false };
}

/** Whether a folder can be written to; unless `mustExist`, one that could be made counts. */
function writable(dir: string, mustExist: boolean): boolean {
  if (!existsSync(dir)) return !mustExist && dir !== path.dirname(dir) && writable(path.dirname(dir), false);
  try {
    accessSync(dir, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function execUser(v: string | undefined): ExecUser | undefined {
  if (v === undefined) return undefined;
  const m = /^(\d{1,10})(?::(\d{1,10}))?$/.exec(v);
  const uid = Number(m?.[1]);
  const gid = Number(m?.[2] ?? m?.[1]);
  if (!m || uid > 0xfffffffe || gid > 0xfffffffe) throw new SettingError(`SANDBOX_EXEC_USER=${show(v)} must be UID or UID:GID in digits. For example: SANDBOX_EXEC_USER=1001:1001`);
  return { uid, gid };
}

function workingDirectory(v: string | undefined): WorkerSettings["cwd"] {
  if (v === undefined) return { path: process.cwd(), explicit: false };
  if (!path.isAbsolute(v) || !existsSync(v) || !statSync(v).isDirectory()) {
    throw new SettingError(`SANDBOX_CWD=${show(v)} must be the absolute path of an existing folder. For example: SANDBOX_CWD=/workspace`);
  }
  return { path: v, explicit: true };
}

function list(v: string | undefined): string[] {
  return v === undefined ? [] : v.split(",").map((x) => x.trim()).filter((x) => x !== "");
}

function labels(v: string | undefined): Record<string, string> {
  const out: Record<string, string> = {};
  for (const pair of list(v)) {
    const m = /^([A-Za-z0-9][A-Za-z0-9._/-]{0,62})=([A-Za-z0-9._/:@+-]{0,255})$/.exec(pair);
    if (!m?.[1] || m[2] === undefined) throw new SettingError(`SANDBOX_LABELS=${show(pair)} must be NAME=VALUE pairs separated by commas. For example: SANDBOX_LABELS=os=rhel,team=a`);
    out[m[1]] = m[2];
  }
  return out;
}
