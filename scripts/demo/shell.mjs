// What the parts of ./demo know, for programs in JavaScript.
import { execFileSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");

/** Runs a bash script after the way and the stack were chosen as ./demo does (MODE, STACK, ...); returns the last line it printed. */
export function afterChoosing(script, env = process.env) {
  const parts = ["lib", "mode", "state"].map((part) => `. scripts/demo/${part}.sh`).join("; ");
  return execFileSync("bash", ["-c", `${parts}; choose_mode; ${script}`], { cwd: root, env, encoding: "utf8" }).trim().split("\n").at(-1);
}

/** PATH of the way the stack is made; the lab's tools are not on the user's own. */
export const toolPath = (env = process.env) => JSON.parse(afterChoosing('[ "$MODE" != lab ] || eval "$(lab/lab env)"; node -p "JSON.stringify(process.env.PATH)"', env));
