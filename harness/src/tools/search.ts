import type { ExecResult } from "@dialout/transports/types";
import { complaint, ToolError, type ToolContext } from "./context";
import { globRegExp } from "./glob";
import { quote, sandboxPath } from "./shell";
import { head } from "./text";

const ABSENT = 93;
const NOT_A_FOLDER = 94;
/** Exit status of the searching half of a pipe whose other half may stop early (141 = SIGPIPE, which is no failure). */
const FIRST_STATUS = `s=\${PIPESTATUS[0]}; [ "$s" = 141 ] && s=0; exit "$s"`;

/** Lists the files under `dir` that match; with rg where the sandbox has it, else with find. Without rg, .gitignore is not followed. */
export function findCommand(dir: string, pattern: string, limit: number): string {
  const q = quote(dir);
  // find's own -name narrows the list only for globs it reads as rg does; the final word is globRegExp's.
  const name = /[/{\\]/.test(pattern) ? "" : ` -name ${quote(pattern)}`;
  const keep = name ? ` | head -n ${limit + 1}` : "";
  return [
    `if ! test -d ${q}; then test -e ${q} && exit ${NOT_A_FOLDER}; exit ${ABSENT}; fi`,
    `cd ${q} || exit 2`,
    `if command -v rg >/dev/null 2>&1; then rg --files --hidden --no-messages -g '!.git' -g ${quote(pattern)} | head -n ${limit + 1}; ${FIRST_STATUS}; fi`,
    `find . -name .git -prune -o -type f${name} -print${keep}; s=\${PIPESTATUS[0]}; [ "$s" = 141 ] && s=0; exit "$s"`,
  ].join("\n");
}

export async function find(ctx: ToolContext, input: { pattern: string; path?: string; limit?: number }): Promise<string> {
  const limit = input.limit ?? 1000;
  const dir = sandboxPath(input.path ?? ".", ctx.harnessCwd, ctx.cwd);
  const matches = compile(input.pattern);
  const result = await ctx.exec(findCommand(dir, input.pattern, limit));
  located(result, dir, ctx);
  // rg: 1 = nothing found. find: 1 = some folder could not be entered; what it did print still holds.
  if (result.exitCode !== 0 && result.exitCode !== 1 && !result.truncated) throw new ToolError(`find failed: ${complaint(result) || `exit code ${result.exitCode}`}`);
  const names = result.stdout.toString("utf8").split("\n").map((l) => l.replace(/^\.\//, "")).filter((l) => l && matches.test(l));
  if (!names.length) return "No files found matching pattern";
  names.sort();
  const shown = head(names, limit);
  return shown.lines < names.length ? `${shown.text}\n\n[only the first ${shown.lines} matches are shown; narrow the pattern or raise limit]` : shown.text;
}

function compile(pattern: string): RegExp {
  try {
    return globRegExp(pattern);
  } catch (e) {
    throw new ToolError(`not a glob: ${(e as Error).message}`);
  }
}

function located(result: ExecResult, target: string, ctx: ToolContext): void {
  if (result.exitCode === ABSENT) throw new ToolError(`Path not found in ${ctx.place}: ${target}`);
  if (result.exitCode === NOT_A_FOLDER) throw new ToolError(`Not a directory: ${target}`);
}

export interface GrepInput {
  pattern: string;
  path?: string;
  glob?: string;
  ignoreCase?: boolean;
  literal?: boolean;
  context?: number;
  limit?: number;
}

/**
 * Prints `path:line:text` (context lines `path-line-text`), with rg where the sandbox has it, else with grep -E. Exit status:
 * 0 found, 1 nothing found, 2 failure, 93 no such path. The two dialects of regular expressions agree on the common ground.
 */
export function grepCommand(target: string, input: GrepInput, limit: number): string {
  const q = quote(target);
  const context = input.context ? ` -C ${Math.trunc(input.context)}` : "";
  const flags = `${input.ignoreCase ? " -i" : ""}${input.literal ? " -F" : ""}`;
  const rg = `rg --line-number --with-filename --no-heading --color=never --hidden -g '!.git'${input.glob ? ` -g ${quote(input.glob)}` : ""}${flags}${context} -e ${quote(input.pattern)} -- ${q}`;
  const grep = `grep -nHI${flags}${input.literal ? "" : " -E"}${context} -e ${quote(input.pattern)}`;
  const name = input.glob && !/[/{\\]/.test(input.glob) ? ` -name ${quote(input.glob)}` : "";
  return [
    `test -e ${q} || exit ${ABSENT}`,
    `if command -v rg >/dev/null 2>&1; then ${rg} | head -n ${limit + 1}; ${FIRST_STATUS}; fi`,
    // find hides grep's status: ask grep about the pattern first, then tell "nothing" from "something" by the output.
    `printf '' | ${grep}; [ $? -gt 1 ] && exit 2`,
    `out=$(find -H ${q} -name .git -prune -o -type f${name} -exec ${grep} {} + | head -n ${limit + 1} | tr -d '\\000'); [ -n "$out" ] || exit 1`,
    `printf '%s\\n' "$out"`,
  ].join("\n");
}

const MAX_LINE = 500;

export async function grep(ctx: ToolContext, input: GrepInput): Promise<string> {
  const target = sandboxPath(input.path ?? ".", ctx.harnessCwd, ctx.cwd);
  const limit = input.limit ?? 200;
  const keeps = input.glob ? compile(input.glob) : undefined;
  const result = await ctx.exec(grepCommand(target, input, limit));
  located(result, target, ctx);
  const text = result.stdout.toString("utf8");
  if (result.exitCode === 1 && !text.trim()) return "No matches found";
  if (result.exitCode !== 0 && result.exitCode !== 1 && !result.truncated) throw new ToolError(`grep failed: ${complaint(result) || `exit code ${result.exitCode}`}`);
  const lines = text.split("\n").filter((l) => l && (!keeps || ofGlob(l, target, keeps))).map((l) => (l.length > MAX_LINE ? `${l.slice(0, MAX_LINE)}... [line cut]` : l));
  if (!lines.length) return "No matches found";
  const shown = head(lines, limit);
  return shown.lines < lines.length ? `${shown.text}\n\n[only the first ${shown.lines} lines are shown; narrow the search or raise limit]` : shown.text;
}

/** The path of an output line starts with what was searched; its rest decides. A separator line (`--`) stays. */
function ofGlob(line: string, target: string, glob: RegExp): boolean {
  const m = /^(.*?)[:-]\d+[:-]/.exec(line);
  if (!m) return true;
  const base = target.endsWith("/") ? target : `${target}/`;
  const path = m[1]!;
  return glob.test(path.startsWith(base) ? path.slice(base.length) : path.slice(path.lastIndexOf("/") + 1));
}
