import { TransportError, type TransportErrorCode } from "@dialout/transports/errors";
import type { SandboxTransport } from "@dialout/transports/types";
import { tool, type ToolSet } from "ai";
import { z } from "zod";
import type { ToolRecord } from "../leaf/result";
import { bash } from "./bash";
import { recordingExec, ToolError, type ToolContext } from "./context";
import { edit, ls, read, write } from "./files";
import { requestApproval, submitVerdict, type Report } from "./report";
import { find, grep } from "./search";

export interface ToolsetOptions {
  /** Missing: only the reporting tools can be offered. */
  sandbox?: { transport: SandboxTransport; cwd: string; place: string };
  harnessCwd: string;
  signal: AbortSignal;
  traceparent: string;
  report: Report;
  /** Which reporting tools are offered, and for which item. */
  reporting: { itemId: string; verdict: boolean; approval: boolean } | undefined;
  records: ToolRecord[];
  onCall(record: ToolRecord): void;
  /** The sandbox is gone or refuses us: nothing the model could do about it. */
  onFatal(error: TransportError): void;
}

/** A leaf that makes more calls than this is still answered, its evidence stops growing. */
const MAX_RECORDS = 200;
const FATAL: ReadonlySet<TransportErrorCode> = new Set(["closed", "disconnected", "not_found", "unavailable", "unauthenticated", "spawn", "kubectl", "internal"]);

/** Starts a failure's text, so that a model whose protocol has no error flag sees one as well. */
export const FAILURE_PREFIX = "Tool failed: ";

const path = z.string().min(1).describe("Path in the sandbox: absolute, or relative to its working directory");
const positive = z.number().int().positive();
const inputs = {
  read: z.object({ path, offset: positive.optional().describe("First line, counted from 1"), limit: positive.optional().describe("Number of lines") }),
  write: z.object({ path, content: z.string() }),
  edit: z.object({
    path,
    edits: z.array(z.object({ oldText: z.string().describe("Exact text; must occur once"), newText: z.string() })).min(1),
  }),
  ls: z.object({ path: path.optional(), limit: positive.optional() }),
  find: z.object({ pattern: z.string().min(1).describe("Glob, e.g. *.ts or src/**/*.json"), path: path.optional(), limit: positive.optional() }),
  grep: z.object({
    pattern: z.string().min(1).describe("Regular expression, or plain text with literal"),
    path: path.optional(),
    glob: z.string().min(1).optional(),
    ignoreCase: z.boolean().optional(),
    literal: z.boolean().optional(),
    context: z.number().int().min(0).max(100).optional(),
    limit: positive.optional(),
  }),
  bash: z.object({ command: z.string().min(1), timeout: z.number().min(0).optional().describe("Seconds; 0 = none") }),
  // Checked again, against the request, by submitVerdict; here the model only learns the form.
  submit_verdict: z.object({ item_id: z.string(), verdict: z.string().describe("FLAGGED or CLEAR"), reason: z.string() }),
  request_approval: z.object({ summary: z.string(), proposed_action: z.string() }),
};

/** The tools of one leaf. Calls run one after the other, also when the model asks for several at once. */
export function createToolset(o: ToolsetOptions): ToolSet {
  let queue: Promise<unknown> = Promise.resolve();

  async function call(name: string, work: (ctx: ToolContext) => string | Promise<string>): Promise<string> {
    const record: ToolRecord = { tool: name, ok: false, ms: 0, execs: [] };
    const start = Date.now();
    try {
      if (o.report.verdict) throw new ToolError("a verdict was submitted, the work is over: no further call runs");
      if (o.report.gate) throw new ToolError("an approval was asked for: no further call runs before the decision");
      o.signal.throwIfAborted();
      const answer = await work(contextOf(record));
      record.ok = true;
      return answer;
    } catch (e) {
      if (e instanceof TransportError && FATAL.has(e.code)) o.onFatal(e);
      throw new Error(`${FAILURE_PREFIX}${(e as Error).message}`, { cause: e });
    } finally {
      record.ms = Date.now() - start;
      if (o.records.length < MAX_RECORDS) o.records.push(record);
      o.onCall(record);
    }
  }

  const contextOf = (record: ToolRecord): ToolContext => {
    if (!o.sandbox) return { exec: () => Promise.reject(new ToolError("no sandbox")), cwd: "/", harnessCwd: o.harnessCwd, place: "none" };
    const { transport, cwd, place } = o.sandbox;
    return { exec: recordingExec(transport, { signal: o.signal, traceparent: o.traceparent }, record.execs), cwd, harnessCwd: o.harnessCwd, place };
  };

  function define<T>(name: string, description: string, inputSchema: z.ZodType<T>, work: (ctx: ToolContext, input: T) => string | Promise<string>): ToolSet {
    const execute = (input: T) => {
      const mine = queue.then(() => call(name, (ctx) => work(ctx, input)));
      queue = mine.catch(() => undefined);
      return mine;
    };
    return { [name]: tool({ description, inputSchema, execute } as never) };
  }

  const set: ToolSet = {};
  if (o.sandbox) {
    Object.assign(
      set,
      define("read", "Reads a text file.", inputs.read, read),
      define("write", "Writes a file, replacing it if it exists; folders are made.", inputs.write, write),
      define("edit", "Replaces exact text in a file.", inputs.edit, edit),
      define("ls", "Lists a folder.", inputs.ls, ls),
      define("find", "Finds files by glob.", inputs.find, find),
      define("grep", "Searches file contents. Prints path:line:text.", inputs.grep, grep),
      define("bash", "Runs a bash command in the sandbox's working directory and returns its output.", inputs.bash, bash),
    );
  }
  const { reporting } = o;
  if (reporting?.verdict) Object.assign(set, define("submit_verdict", "Reports the verdict for the item. Call it exactly once, at the end.", inputs.submit_verdict, (_, input) => submitVerdict(o.report, input, reporting.itemId)));
  if (reporting?.approval) Object.assign(set, define("request_approval", "Asks a person to approve what you propose, and ends your work until they decide.", inputs.request_approval, (_, input) => requestApproval(o.report, input)));
  return set;
}
