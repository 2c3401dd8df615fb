// Pulumi's file backend, after a pulumi that was killed: node mend-state.mjs BACKEND_FOLDER
// A lock whose process is gone is taken away. Where there was one, the kill may have hit a save: Pulumi moves the state to `.bak`, writes
// a new file and then an `.attrs` beside it, and takes a stack with half an `.attrs` for one that does not exist. What is half is
// dropped, and a state that is missing or half comes back from its `.bak`. Prints a line for everything it did.
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const list = (dir) => (existsSync(dir) ? readdirSync(dir) : []);

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** The parsed file; undefined when it is missing or no JSON. */
function json(file) {
  try {
    return JSON.parse(read(file));
  } catch {
    return undefined;
  }
}

/** Whether `pid` is a pulumi that runs: not one that nobody has waited for yet, nor another program with a number that came round again. */
export function lives(pid) {
  try {
    process.kill(pid, 0);
  } catch (e) {
    return e.code !== "ESRCH";
  }
  const stat = existsSync("/proc/self/stat") ? read(`/proc/${pid}/stat`) : undefined;
  return stat === undefined || /\(pulumi[^)]*\) [^ZX]/.test(stat);
}

/** Mends every stack of `backend` that a killed process of this machine had locked; returns what was done, a sentence each. */
export function mend(backend, { host = hostname(), alive = lives } = {}) {
  const done = [], locks = path.join(backend, ".pulumi/locks/organization"), stacks = path.join(backend, ".pulumi/stacks");
  for (const project of list(locks)) {
    for (const stack of list(path.join(locks, project))) {
      const dir = path.join(locks, project, stack);
      const held = list(dir).filter((f) => f.endsWith(".json")).map((f) => ({ file: path.join(dir, f), lock: json(path.join(dir, f)) }));
      // A lock that cannot be read was cut while it was written; one of another machine says nothing about a process here.
      if (!held.length || held.some(({ lock }) => lock && (lock.hostname !== host || alive(lock.pid)))) continue;
      done.push(...mendStack(path.join(stacks, project), stack));
      for (const { file, lock } of held) {
        rmSync(file, { force: true });
        rmSync(`${file}.attrs`, { force: true });
        done.push(`took away the lock of stack '${stack}' that process ${lock?.pid ?? "?"} left when it was killed`);
      }
    }
  }
  return done;
}

function mendStack(dir, stack) {
  const done = [], file = path.join(dir, `${stack}.json`), before = `${file}.bak`;
  for (const name of list(dir).filter((f) => f.startsWith(`${stack}.json`))) {
    const full = path.join(dir, name);
    if (name.endsWith(".tmp") || (name.endsWith(".attrs") && json(full) === undefined)) rmSync(full);
  }
  if (json(file) === undefined && json(before) !== undefined) {
    copyFileSync(before, file);
    rmSync(`${file}.attrs`, { force: true });
    done.push(`the state of stack '${stack}' was cut while it was saved; the one before it is in force`);
  }
  return done;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const line of mend(process.argv[2])) console.error(line);
}
