import { execFile, spawn } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";

/** First argument of the program when it is the helper. */
export const SPAWN_HELPER = "spawn-helper";

/** What the worker asks. Paths are those of named pipes, except `stdin`, a file; without it standard input is empty. */
export type Ask =
  | { t: "spawn"; id: number; file: string; args: string[]; env: Record<string, string>; stdin?: string; stdout: string; stderr: string; control: string; controlFd: 0 | 3 }
  | { t: "mkfifo"; id: number; files: string[] };

/** `done` or `failed` answers each Ask; `exit` follows a `done` that had a pid. */
export type Tell =
  | { t: "ready" }
  | { t: "done"; id: number; pid?: number }
  | { t: "failed"; id: number; message: string; code?: string }
  | { t: "exit"; id: number; code: number | null; signal: string | null };

/**
 * Starts processes for the worker. Starting one copies the page tables of whoever does it, at about 0.1 ms per MiB during
 * which nothing else happens there; this process is small and has nothing else to do. It ends when the worker has.
 */
export function runSpawnHelper(): void {
  // A signal to the whole group (Ctrl-C, a supervisor) is for the worker, whose running commands may still end in order.
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const) process.on(name, () => undefined);
  process.on("disconnect", () => process.exit(0));
  process.on("message", (ask: Ask) => (ask.t === "spawn" ? start(ask) : makeFifos(ask)));
  tell({ t: "ready" });
}

function tell(message: Tell): void {
  // An error here means that the worker is gone; `disconnect` follows.
  process.send?.(message, undefined, undefined, () => undefined);
}

function start(ask: Extract<Ask, { t: "spawn" }>): void {
  const { id } = ask;
  const fds: number[] = [];
  const open = (file: string, flags: number) => {
    // A worker that ended meanwhile has closed its ends: opening one end alone would then wait for ever.
    const guard = openSync(file, constants.O_RDWR);
    try {
      fds.push(openSync(file, flags));
      return fds.at(-1) as number;
    } finally {
      closeSync(guard);
    }
  };
  try {
    const control = open(ask.control, constants.O_RDONLY);
    const out = open(ask.stdout, constants.O_WRONLY);
    const err = open(ask.stderr, constants.O_WRONLY);
    if (ask.stdin !== undefined) fds.push(openSync(ask.stdin, constants.O_RDONLY));
    const stdin = ask.stdin === undefined ? "ignore" : (fds.at(-1) as number);
    const child = spawn(ask.file, ask.args, { cwd: "/", detached: true, env: ask.env, stdio: ask.controlFd === 0 ? [control, out, err] : [stdin, out, err, control] });
    child.once("error", (e: NodeJS.ErrnoException) => tell({ t: "failed", id, message: e.message, code: e.code }));
    if (child.pid === undefined) return;
    tell({ t: "done", id, pid: child.pid });
    child.once("exit", (code, signal) => tell({ t: "exit", id, code, signal }));
  } catch (e) {
    tell({ t: "failed", id, message: (e as Error).message, code: (e as NodeJS.ErrnoException).code });
  } finally {
    for (const fd of fds) closeSync(fd);
  }
}

function makeFifos({ id, files }: Extract<Ask, { t: "mkfifo" }>): void {
  execFile("mkfifo", ["-m", "666", ...files], (e, _, stderr) => tell(e ? { t: "failed", id, message: stderr.trim() || e.message } : { t: "done", id }));
}
