import type { ExecOptions, ExecResult, KillReport, SandboxTransport } from "@dialout/transports/types";
import type { ExecRecord } from "../leaf/result";

/** Something the model can react to. Its message is the tool's answer, marked as an error. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}

/** What a tool works with: the sandbox and where in it. */
export interface ToolContext {
  exec(command: string, options?: ExecOptions): Promise<ExecResult>;
  /** The sandbox's working directory. */
  cwd: string;
  /** The harness's own, for the path rule. */
  harnessCwd: string;
  /** "pod", "remote sandbox" or "harness container", for messages. */
  place: string;
}

/** exec of a transport with what every command of a leaf has in common, noting each command in `records`. */
export function recordingExec(transport: SandboxTransport, common: Pick<ExecOptions, "signal" | "traceparent">, records: ExecRecord[]): ToolContext["exec"] {
  return async (command, options = {}) => {
    const start = Date.now();
    const record: ExecRecord = { stdoutBytes: 0, stderrBytes: 0, ms: 0 };
    records.push(record);
    try {
      const result = await transport.exec(command, { ...common, ...options });
      Object.assign(record, { execId: result.execId, exitCode: result.exitCode, stdoutBytes: result.stdout.length, stderrBytes: result.stderr.length, deliveries: result.deliveries, ...killOf(result.kill) });
      return result;
    } catch (e) {
      Object.assign(record, { execId: (e as { execId?: string }).execId, error: (e as Error).message, ...killOf((e as { kill?: KillReport }).kill) });
      throw e;
    } finally {
      record.ms = Date.now() - start;
    }
  };
}

const killOf = (kill: KillReport | undefined): Pick<ExecRecord, "kill"> => (kill ? { kill: { verified: kill.verified, remaining: kill.remaining, detail: kill.detail } } : {});

/** stderr's last words, for an error message; empty when there are none. */
export const complaint = (result: ExecResult) => result.stderr.toString("utf8").trim().slice(-2000);

/** Throws unless the command ended with 0; `what` starts the message. */
export function mustSucceed(result: ExecResult, what: string): ExecResult {
  if (result.truncated) throw new ToolError(`${what}: the output is larger than the sandbox delivers (${result.stdout.length} bytes)`);
  if (result.exitCode === 0) return result;
  const how = result.exitCode === null ? "the command was killed" : `exit code ${result.exitCode}`;
  throw new ToolError(`${what}: ${complaint(result) || how}`);
}
