import { SANDBOX_ID, SettingError, Settings, secretMatches, show, type Env } from "@dialout/common";
import { readFileSync, statSync } from "node:fs";
import path from "node:path";

/** What workers may present. An empty string in `perId` refuses that id: a defined override never falls back. */
export interface WorkerTokens {
  global: string | undefined;
  previous: string | undefined;
  perId: ReadonlyMap<string, string>;
  dir: string | undefined;
}

/** What callers of Exec, Abort and Describe may present. `required: false` is the compatibility switch. */
export interface ExecTokens {
  required: boolean;
  tokens: readonly { caller: string; token: string }[];
}

const WORKER = "SH_RELAY_TOKEN";
const EXEC = "SH_RELAY_EXEC_TOKEN";
/** Names of other settings that look like a token of a sandbox or caller of that name. */
const RESERVED = new Set(["DIR", "PREVIOUS"]);
/** The caller's name when it presented the shared token, or none while the switch is off. */
export const SHARED_CALLER = "default";
export const UNKNOWN_CALLER = "anonymous";

function checked(name: string, token: string | undefined): string | undefined {
  if (token !== undefined && /\s/.test(token)) {
    throw new SettingError(`${name} holds white space, which no bearer token can (often a line end in the Secret). For example: ${name}=$(openssl rand -hex 16)`);
  }
  return token;
}

function suffixed(env: Env, prefix: string): [name: string, suffix: string, value: string][] {
  return Object.entries(env)
    .filter(([name, value]) => name.startsWith(`${prefix}_`) && value !== undefined)
    .map(([name, value]) => [name, name.slice(prefix.length + 1), value as string] as [string, string, string])
    .filter(([, suffix]) => !RESERVED.has(suffix));
}

function previousOf(s: Settings, name: string): string | undefined {
  const previous = checked(`${name}_PREVIOUS`, s.raw(`${name}_PREVIOUS`));
  if (previous !== undefined && s.raw(name) === undefined) {
    throw new SettingError(`${name}_PREVIOUS is set but ${name} is not: the previous token is accepted besides the present one, not instead of it. Set ${name}`);
  }
  return previous;
}

function refuseMissingFolder(name: string, folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new SettingError(`${name}=${show(folder)} must be a folder with one token file per sandbox id. For example: mkdir -p ${show(folder)}`);
}

export function readWorkerTokens(s: Settings, env: Env): WorkerTokens {
  const perId = new Map<string, string>();
  for (const [name, id, value] of suffixed(env, WORKER)) {
    if (!SANDBOX_ID.test(id)) throw new SettingError(`${name} names no valid sandbox id. For example: ${WORKER}_sbx-1=$(openssl rand -hex 16)`);
    perId.set(id, checked(name, value) ?? "");
  }
  const dir = s.raw(`${WORKER}_DIR`);
  if (dir) refuseMissingFolder(`${WORKER}_DIR`, dir);
  return { global: checked(WORKER, s.raw(WORKER)), previous: previousOf(s, WORKER), perId, dir };
}

export function readExecTokens(s: Settings, env: Env): ExecTokens {
  const required = s.oneOf("SH_RELAY_EXEC_AUTH", ["on", "off"], "on") === "on";
  const tokens: { caller: string; token: string }[] = [];
  const add = (name: string, caller: string, token: string) => {
    // Two callers with one token could not be told apart; present and previous of one caller may be the same.
    const twin = tokens.find((t) => t.token === token && t.caller !== caller);
    if (twin) throw new SettingError(`${name} equals the exec token of caller '${twin.caller}': every caller needs its own. For example: ${name}=$(openssl rand -hex 16)`);
    tokens.push({ caller, token });
  };
  const shared = checked(EXEC, s.raw(EXEC));
  if (shared) add(EXEC, SHARED_CALLER, shared);
  const previous = previousOf(s, EXEC);
  if (previous) add(`${EXEC}_PREVIOUS`, SHARED_CALLER, previous);
  for (const [name, caller, value] of suffixed(env, EXEC)) {
    if (!SANDBOX_ID.test(caller)) throw new SettingError(`${name} names no valid caller. For example: ${EXEC}_harness=$(openssl rand -hex 16)`);
    if (value === "") throw new SettingError(`${name} is empty: an empty token never matches. For example: ${name}=$(openssl rand -hex 16)`);
    add(name, caller, checked(name, value) as string);
  }
  if (required && tokens.length === 0) {
    throw new SettingError(`${EXEC} is not set: without it anybody who reaches the exec port could run commands. Set it, for example: ${EXEC}=$(openssl rand -hex 16) (callers that send no credentials need SH_RELAY_EXEC_AUTH=off)`);
  }
  return { required, tokens };
}

/** A token that opens both doors would let every worker run commands on every other. */
export function refuseSharedTokens(worker: WorkerTokens, exec: ExecTokens): void {
  const mine: [string, string | undefined][] = [[WORKER, worker.global], [`${WORKER}_PREVIOUS`, worker.previous]];
  for (const [id, token] of worker.perId) mine.push([`${WORKER}_${id}`, token]);
  for (const [name, token] of mine) {
    const same = exec.tokens.find((e) => secretMatches(token, e.token));
    if (same) throw new SettingError(`${name} equals the exec token of caller '${same.caller}': a worker could run commands on the others. For example: ${EXEC}=$(openssl rand -hex 16)`);
  }
}

/** True when no worker could ever attach: nothing is configured, which refuses everybody. */
export function noWorkerTokens(worker: WorkerTokens): boolean {
  return !worker.global && !worker.dir && ![...worker.perId.values()].some(Boolean);
}

/** Reads a token file: undefined when there is none. Throws for every other failure. */
export type ReadTokenFile = (file: string) => string | undefined;

const readTokenFile: ReadTokenFile = (file) => {
  try {
    return readFileSync(file, "utf8");
  } catch (e) {
    if ((e as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw e;
  }
};

/**
 * The tokens a sandbox id may attach with, read anew per attach: its file, else its own variable, else the global pair.
 * A file holds one token, or two lines while one is being replaced. Empty or unreadable means nobody gets in.
 * `id` must satisfy SANDBOX_ID, which keeps it from leaving the folder.
 */
export function workerTokensFor(worker: WorkerTokens, id: string, read: ReadTokenFile = readTokenFile): readonly string[] {
  if (worker.dir) {
    let text: string | undefined;
    try {
      text = read(path.join(worker.dir, id));
    } catch {
      return [];
    }
    if (text !== undefined) {
      const lines = text.replace(/\r?\n$/, "").split(/\r?\n/);
      return lines.length <= 2 && lines.every((l) => l !== "" && !/\s/.test(l)) ? lines : [];
    }
  }
  const own = worker.perId.get(id);
  if (own !== undefined) return own === "" ? [] : [own];
  return [worker.global, worker.previous].filter((t): t is string => Boolean(t));
}

/** Compares with every candidate, so that the time taken does not tell which one matched. */
export function workerMayAttach(worker: WorkerTokens, exec: ExecTokens, id: string, presented: string | undefined, read?: ReadTokenFile): boolean {
  const expected = workerTokensFor(worker, id, read);
  let ok = false;
  for (const token of expected) ok = secretMatches(presented, token) || ok;
  // Token files can change at any time, so "never the same as an exec token" is checked again here.
  for (const { token } of exec.tokens) if (secretMatches(presented, token)) ok = false;
  return ok;
}

/** The caller's name, or undefined when it must be refused. */
export function identifyCaller(exec: ExecTokens, presented: string | undefined): string | undefined {
  let caller: string | undefined;
  for (const t of exec.tokens) if (secretMatches(presented, t.token)) caller = t.caller;
  return caller ?? (exec.required ? undefined : UNKNOWN_CALLER);
}
