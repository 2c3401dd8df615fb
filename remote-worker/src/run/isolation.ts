import { accessSync, constants, lstatSync, readFileSync, realpathSync, statSync } from "node:fs";
import path from "node:path";
import { SettingError, type Env, type Logger } from "@dialout/common";
import { CAP, hasCap, ProcFs } from "../kill/procfs";
import type { WorkerSettings } from "../settings";
import { CellLauncher } from "./cellLauncher";
import { commandEnv } from "./env";
import type { Launcher } from "./launcher";
import { ProcessLauncher } from "./processLauncher";
import type { Spawner } from "./spawner";

/** Waiting places kept per launcher; each costs a few MiB. */
const SPARES = 4;

/** What the process may do, as far as isolation depends on it. */
export interface Powers {
  root: boolean;
  setIds: boolean;
  setGroups: boolean;
  admin: boolean;
}

export function powersOf(status: string, uid: number): Powers {
  const setGroups = hasCap(status, CAP.SETGID);
  return { root: uid === 0, setGroups, setIds: setGroups && hasCap(status, CAP.SETUID), admin: hasCap(status, CAP.SYS_ADMIN) && hasCap(status, CAP.SETPCAP) };
}

export interface Chosen {
  launcher: Launcher;
  /** One sentence on what keeps commands apart, for the log. */
  inForce: string;
  /** What commands could do that they should not; empty when nothing is known. */
  warnings: string[];
}

/** The process itself and all its ancestors. */
export function lineage(proc: ProcFs, pid: number): Set<number> {
  const own = new Set<number>();
  for (let p = pid; p > 0 && !own.has(p); p = proc.stat(p)?.ppid ?? 0) own.add(p);
  return own;
}

/**
 * Picks the strongest isolation that works here, tried by running a command, or the one that was asked for.
 * Throws a SettingError when the choice, the user or the folder cannot be had.
 */
export async function chooseIsolation(settings: WorkerSettings, env: Env, spawner: Spawner, proc: ProcFs, log: Logger): Promise<Chosen> {
  const powers = powersOf(readFileSync("/proc/self/status", "utf8"), process.getuid?.() ?? 0);
  const warnings: string[] = [];
  let user = settings.execUser;
  if (user && !powers.setIds) {
    if (powers.root) throw new SettingError(`SANDBOX_EXEC_USER=${user.uid}:${user.gid} needs the capabilities SETUID and SETGID, which this worker lacks. Add them (docker run --cap-add SETUID --cap-add SETGID), or start the worker as that user`);
    if (user.uid !== process.getuid?.()) warnings.push(`SANDBOX_EXEC_USER=${user.uid} is ignored: only a worker that is root can change the user of its commands`);
    user = undefined;
  }
  for (const tool of user ? ["bash", "mkfifo", "setpriv"] : ["bash", "mkfifo"]) {
    if (!onPath(tool, env)) throw new SettingError(`PATH has no ${tool}, which the worker needs. Install it (${tool === "setpriv" ? "util-linux" : tool === "bash" ? "bash" : "coreutils"}), or correct PATH`);
  }
  const cwd = settings.cwd.path;
  const common = { cwd, env: commandEnv(env, settings.envPass, user, cwd) };
  const asked = settings.isolation;
  if (asked === "pidns" && settings.leftovers === "keep") throw new SettingError("WORKER_LEFTOVERS=keep does not go with SANDBOX_ISOLATION=pidns: the namespace ends with its command. Set SANDBOX_ISOLATION=user or none");
  if (asked === "user" && !user) throw new SettingError("SANDBOX_ISOLATION=user needs a worker that is root and SANDBOX_EXEC_USER. For example: SANDBOX_EXEC_USER=1001:1001");

  if (asked === "pidns" || (asked === "auto" && settings.leftovers === "kill")) {
    const why = await tryCells();
    if (typeof why !== "string") return why;
    if (asked === "pidns") throw new SettingError(`SANDBOX_ISOLATION=pidns does not work here: ${why}. Set SANDBOX_ISOLATION=auto to use what does`);
    log.debug({ why }, "no pid namespaces here");
  }

  const own = lineage(proc, process.pid).add(spawner.pid);
  const groupMark = powers.setGroups && onPath("setpriv", env);
  const kind = user ? "user" : "none";
  const ownNamespace = env.DIALOUT_ENTRY === "1" && process.ppid === 1;
  let launcher = new ProcessLauncher({ kind, user, groupMark, ownNamespace, leftovers: settings.leftovers, ...common }, spawner, proc, own, SPARES);
  let failure = await probe(launcher);
  let marked = groupMark;
  if (failure && groupMark) {
    // A user namespace with a short id map refuses groups it does not know.
    launcher.close();
    marked = false;
    launcher = new ProcessLauncher({ kind, user, groupMark: false, ownNamespace, leftovers: settings.leftovers, ...common }, spawner, proc, own, SPARES);
    failure = await probe(launcher);
  }
  if (failure) throw new SettingError(`no command can be run here: ${failure}. Check ${user ? `SANDBOX_EXEC_USER=${user.uid}:${user.gid}` : "bash on PATH"}`);
  if (kind === "none") {
    warnings.push(powers.root
      ? "commands run as root beside the worker and can read its token. Set SANDBOX_EXEC_USER=UID, or allow pid namespaces (CAP_SYS_ADMIN)"
      : "commands run as the worker's own user and can read its token from /proc. Start the worker as root with SANDBOX_EXEC_USER=UID, or allow user namespaces");
  }
  if (!marked && !ownNamespace) warnings.push("a process that clears its environment and leaves its session can only be suspected, not proven: such kills are reported as unverified");
  return {
    launcher,
    inForce: `${user ? `commands run as uid ${user.uid}` : "commands run as the worker's user"}, found again by ${marked ? "a group of their own" : "an environment mark"}`,
    warnings,
  };

  async function tryCells(): Promise<Chosen | string> {
    if (!powers.admin && powers.root) return "CAP_SYS_ADMIN is missing";
    const missing = ["unshare", "nsenter", "setpriv", "setsid", "mount"].find((t) => !onPath(t, env));
    if (missing) return `PATH has no ${missing}`;
    const launcher = new CellLauncher({ user, root: powers.root, masks: () => masks(settings), ...common }, spawner, proc, SPARES);
    const failure = await probe(launcher);
    if (failure) {
      launcher.close();
      return failure;
    }
    const as = user ? `uid ${user.uid}` : powers.root ? "root with a container's capabilities" : "the worker's user";
    return { launcher, inForce: `each command has its own pid namespace and runs as ${as}; the token file and the journal are hidden from it`, warnings };
  }
}

/** The paths that a command must not see: the token file, or its folder where that is private or swaps its files, and the journal. */
export function masks(settings: Pick<WorkerSettings, "token" | "stateDir">): string[] {
  const out: string[] = [];
  if (settings.token.kind === "file") {
    const file = settings.token.path;
    const dir = path.dirname(file);
    const swapped = lstatSync(file).isSymbolicLink();
    const isPrivate = (statSync(dir).mode & 0o077) === 0 && statSync(dir).uid === process.getuid?.();
    const inUse = (d: string) => process.cwd() === d || process.cwd().startsWith(`${d}/`) || process.env.HOME === d || d === "/";
    out.push(realpathSync(file));
    if ((swapped || isPrivate) && !inUse(dir)) out.push(realpathSync(dir));
  }
  out.push(realpathSync(settings.stateDir.path));
  return out;
}

export function onPath(tool: string, env: Env): boolean {
  return (env.PATH ?? "").split(":").some((dir) => {
    try {
      accessSync(path.join(dir || ".", tool), constants.X_OK);
      return statSync(path.join(dir || ".", tool)).isFile();
    } catch {
      return false;
    }
  });
}

/** Runs one command through the launcher. Returns what is wrong, or undefined. */
async function probe(launcher: Launcher): Promise<string | undefined> {
  try {
    const place = await launcher.prepare();
    const command = place.start({ command: "printf probe; exit 7", traceparent: "" });
    let out = "";
    let err = "";
    command.stdout.deliver((d) => void (out += d.toString("latin1")));
    command.stderr.deliver((d) => void (err += d.toString("latin1")));
    const closed = Promise.all([command.stdout, command.stderr].map((s) => new Promise<void>((r) => s.once("close", () => r()))));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new Error("a command did not end within 10 s")), 10_000)));
    const exit = await Promise.race([Promise.all([command.exited, closed]).then(([e]) => e), late]).finally(() => clearTimeout(timer));
    await command.settle();
    return exit.code === 7 && out === "probe" ? undefined : `a command ended with ${exit.code ?? exit.signal}: ${err.trim().slice(0, 300) || "no message"}`;
  } catch (e) {
    return (e as Error).message;
  }
}
