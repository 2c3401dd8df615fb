import { spawnSync } from "node:child_process";
import { accessSync, chmodSync, closeSync, constants, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import path from "node:path";
import { SettingError, show, type Logger } from "@dialout/common";

const TRIES = 9;

/**
 * Makes the state folder and locks it for this process. The lock is flock(2) on a descriptor that stays open, taken through
 * the `flock` program since Node has no call for it: the kernel lets go of it however the worker ends.
 * A folder that the user named and another worker holds is refused; the default one is stepped around (`<dir>.2`, ...).
 */
export function claimStateDir(wanted: { path: string; explicit: boolean }, log: Logger): string {
  for (let i = 1; i <= (wanted.explicit ? 1 : TRIES); i++) {
    const dir = i === 1 ? wanted.path : `${wanted.path}.${i}`;
    try {
      makeDir(dir);
      accessSync(dir, constants.W_OK | constants.R_OK | constants.X_OK);
    } catch (e) {
      throw new SettingError(`WORKER_STATE_DIR=${show(dir)} must be a folder this worker can write to (${(e as NodeJS.ErrnoException).code}). For example: WORKER_STATE_DIR=$HOME/.local/state/dialout-worker`);
    }
    try {
      chmodSync(dir, 0o700);
    } catch {
      // a volume of another owner that we may write to; its mode is the owner's business
    }
    if (lock(path.join(dir, "lock"))) {
      if (i > 1) log.warn({ dir, busy: wanted.path }, "another worker uses the default state folder; this one keeps a journal of its own");
      return dir;
    }
  }
  throw new SettingError(`WORKER_STATE_DIR=${show(wanted.path)} is in use by another worker. Stop it, or give this one a folder of its own: WORKER_STATE_DIR=${wanted.path}-2`);
}

/** Not mkdir's own `recursive`: under a folder that takes no children, such as /proc, that never returns. */
function makeDir(dir: string): void {
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (e) {
    const { code } = e as NodeJS.ErrnoException;
    if (code === "EEXIST" && statSync(dir).isDirectory()) return;
    if (code !== "ENOENT" || existsSync(path.dirname(dir)) || dir === path.dirname(dir)) throw e;
    makeDir(path.dirname(dir));
    mkdirSync(dir, { mode: 0o700 });
  }
}

function lock(file: string): boolean {
  const fd = openSync(file, "a", 0o600);
  const r = spawnSync("flock", ["--exclusive", "--nonblock", "3"], { stdio: ["ignore", "ignore", "pipe", fd] });
  if (r.error) throw new SettingError(`PATH has no flock (${(r.error as NodeJS.ErrnoException).code}), which guards the journal. Install it (util-linux)`);
  if (r.status === 0) return true;
  closeSync(fd);
  return false;
}
