import { show } from "@dialout/common";
import { ExecRequest, ServerFrame, type Exec } from "@dialout/proto";
import { checkSandboxId } from "./hello";
import { refuse } from "./status";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;
/** Ids above this break base peers in TypeScript, which decode uint64 to a double. */
const MAX_ID = BigInt(Number.MAX_SAFE_INTEGER);

export interface CheckedExec {
  sandboxId: string;
  exec: Exec;
  reqId: number;
}

/** Throws a Refusal. */
export function checkReqId(reqId: bigint): number {
  if (reqId > MAX_ID) throw refuse.invalid(`req_id ${reqId} must be at most ${MAX_ID}`);
  return Number(reqId);
}

/** Throws a Refusal. An empty id is a base caller's. */
export function checkExecId(execId: string): void {
  if (execId !== "" && !UUID.test(execId)) throw refuse.invalid(`exec_id ${show(execId)} must be a UUID`);
}

/** Decodes a message of a caller. Throws a Refusal. */
export function decodeRequest<T>(what: string, decode: (bytes: Buffer) => T, bytes: Buffer): T {
  try {
    return decode(bytes);
  } catch (e) {
    throw refuse.invalid(`${what} cannot be decoded: ${(e as Error).message}`);
  }
}

/** Decodes and checks an ExecRequest. Throws a Refusal. */
export function checkExecRequest(bytes: Buffer): CheckedExec {
  const { sandboxId, exec } = decodeRequest("ExecRequest", (b) => ExecRequest.decode(b), bytes);
  if (!exec) throw refuse.invalid("ExecRequest missing exec field");
  checkSandboxId(sandboxId);
  const reqId = checkReqId(exec.reqId);
  checkExecId(exec.execId);
  if (exec.journalId.length > 256) throw refuse.invalid(`journal_id ${show(exec.journalId)} must be at most 256 characters`);
  if (exec.resumeStdout > MAX_ID || exec.resumeStderr > MAX_ID) throw refuse.invalid(`resume_stdout and resume_stderr must be at most ${MAX_ID}`);
  return { sandboxId, exec, reqId };
}

/** The frame that delivers an exec: a base worker gets the base fields only, another one its window as well. */
export function execFrame(exec: Exec, protocol: number, window: number): Buffer {
  const base = { reqId: exec.reqId, command: exec.command, stdin: exec.stdin, timeoutS: exec.timeoutS, streaming: exec.streaming };
  const nothing = { execId: "", journalId: "", delivery: 0, resumeStdout: 0n, resumeStderr: 0n, outputCap: 0n, window: 0n, graceS: 0, traceparent: "" };
  // Trace context is a courtesy: a malformed one is left out, it is no reason to refuse the command.
  const traceparent = TRACEPARENT.test(exec.traceparent) ? exec.traceparent : "";
  const value: Exec = protocol >= 1 ? { ...exec, traceparent, window: BigInt(window) } : { ...base, ...nothing };
  return encodeFrame({ msg: { $case: "exec", value } });
}

export function encodeFrame(frame: ServerFrame): Buffer {
  return viewOf(ServerFrame.encode(frame).finish());
}

/** The same bytes as a Buffer, without copying them. */
export function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
