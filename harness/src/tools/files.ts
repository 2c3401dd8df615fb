import path from "node:path";
import { mustSucceed, ToolError, type ToolContext } from "./context";
import { applyEdits, type Edit } from "./edits";
import { quote, sandboxPath } from "./shell";
import { decode, head, MAX_BYTES } from "./text";

async function access(ctx: ToolContext, file: string, test: string, word: string): Promise<void> {
  const result = await ctx.exec(test);
  if (result.exitCode !== 0) throw new ToolError(`File not ${word} in ${ctx.place}: ${file}`);
}

async function content(ctx: ToolContext, file: string): Promise<string> {
  const result = mustSucceed(await ctx.exec(`cat ${quote(file)}`), `cannot read ${file}`);
  const decoded = decode(result.stdout);
  if ("binary" in decoded) throw new ToolError(`${file} is not text (${result.stdout.length} bytes, not UTF-8 or with NUL bytes). Look at it with bash, e.g. od -c or strings`);
  return decoded.text;
}

/** The file's lines from `offset` (1-based), at most `limit` and what fits; a notice says where to go on. */
export async function read(ctx: ToolContext, input: { path: string; offset?: number; limit?: number }): Promise<string> {
  const file = sandboxPath(input.path, ctx.harnessCwd, ctx.cwd);
  await access(ctx, file, `test -r ${quote(file)}`, "readable");
  // A sandbox without `file` is fine: the content itself tells text from binary below.
  const mime = (await ctx.exec(`file --mime-type -b ${quote(file)}`)).stdout.toString("utf8").trim();
  if (/^(image|audio|video)\/(?!svg)/.test(mime)) throw new ToolError(`${file} is ${mime}, not text`);
  const lines = (await content(ctx, file)).split("\n");
  const total = lines.at(-1) === "" ? lines.length - 1 : lines.length;
  const from = Math.max(1, input.offset ?? 1);
  if (total > 0 && from > total) throw new ToolError(`offset ${from} is beyond the end of ${file}, which has ${total} lines`);
  const wanted = lines.slice(from - 1, input.limit === undefined ? undefined : from - 1 + input.limit);
  const shown = head(wanted);
  const end = from - 1 + shown.lines;
  const notices = [
    ...(shown.cutLine ? [`[line ${from} is longer than ${MAX_BYTES} bytes and was cut; see the rest with bash, e.g. cut -c]`] : []),
    ...(end < total ? [`[lines ${from}-${end} of ${total}; use offset=${end + 1} to continue]`] : []),
  ];
  return [shown.text, ...notices].join(notices.length ? "\n\n" : "");
}

/** Creates or replaces the file, and its folders. */
export async function write(ctx: ToolContext, input: { path: string; content: string }): Promise<string> {
  const file = sandboxPath(input.path, ctx.harnessCwd, ctx.cwd);
  await put(ctx, file, input.content);
  return `Wrote ${Buffer.byteLength(input.content)} bytes to ${file}`;
}

async function put(ctx: ToolContext, file: string, text: string): Promise<void> {
  const command = `mkdir -p ${quote(path.posix.dirname(file))} && base64 -d > ${quote(file)}`;
  mustSucceed(await ctx.exec(command, { stdin: Buffer.from(Buffer.from(text).toString("base64")) }), `cannot write ${file}`);
}

/** Replaces exact text; see applyEdits for the rules. The file is written only when every replacement fits. */
export async function edit(ctx: ToolContext, input: { path: string; edits: readonly Edit[] }): Promise<string> {
  const file = sandboxPath(input.path, ctx.harnessCwd, ctx.cwd);
  await access(ctx, file, `test -r ${quote(file)} && test -w ${quote(file)}`, "readable and writable");
  const changed = applyEdits(await content(ctx, file), input.edits);
  if ("problem" in changed) throw new ToolError(`${file}: ${changed.problem}. Nothing was changed`);
  await put(ctx, file, changed.text);
  return `Replaced ${input.edits.length} block${input.edits.length === 1 ? "" : "s"} in ${file}`;
}

const ABSENT = 93;
const NOT_A_FOLDER = 94;

/** The folder's entries in byte order, folders with a slash at the end. */
export async function ls(ctx: ToolContext, input: { path?: string; limit?: number }): Promise<string> {
  const dir = sandboxPath(input.path ?? ".", ctx.harnessCwd, ctx.cwd);
  const q = quote(dir);
  const result = await ctx.exec(`if ! test -e ${q}; then exit ${ABSENT}; elif ! test -d ${q}; then exit ${NOT_A_FOLDER}; fi; LC_ALL=C ls -1Ap ${q}`);
  if (result.exitCode === ABSENT) throw new ToolError(`Path not found in ${ctx.place}: ${dir}`);
  if (result.exitCode === NOT_A_FOLDER) throw new ToolError(`Not a directory: ${dir}`);
  const names = mustSucceed(result, `cannot list ${dir}`).stdout.toString("utf8").split("\n").filter(Boolean);
  if (!names.length) return "(empty directory)";
  const shown = head(names, input.limit ?? 500);
  return shown.lines < names.length ? `${shown.text}\n\n[${names.length - shown.lines} more entries; raise limit to see them]` : shown.text;
}
