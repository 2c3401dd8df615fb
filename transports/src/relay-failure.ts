// What a failed delivery means: the one place that maps gRPC statuses and ExecErrors to "try again" or "tell the caller".
import { status } from "@grpc/grpc-js";
import type { ExecError } from "@dialout/proto";
import { TransportError, type TransportErrorCode } from "./errors";

export interface Failure {
  error: TransportError;
  /**
   * What may be done before telling the caller: hand the same command over again; the same after asking who is there now
   * (`describe`); the same under another req_id (`renumber`); nothing.
   */
  next: "redeliver" | "describe" | "renumber" | "fail";
  /** The relay says that no worker saw this delivery. */
  unseen?: boolean;
}

export interface Where {
  addr: string;
  sandboxId: string;
}

const failure = (next: Failure["next"], code: TransportErrorCode, message: string, unseen = false): Failure => ({
  next,
  unseen,
  error: new TransportError(code, message, { retryable: next !== "fail" || code === "busy" || code === "resource_exhausted" }),
});

/** A call that ended with a status and without a terminal event. `code` OK means the stream was closed early. */
export function fromStatus(code: number, details: string, where: Where): Failure {
  const relay = `relay at ${where.addr}`;
  switch (code) {
    case status.NOT_FOUND:
      return failure("redeliver", "not_found", `${details || `no live worker for sandbox '${where.sandboxId}'`} (${relay}). Is the worker running? Its log says 'attached, serving execs' when it is`, true);
    case status.ALREADY_EXISTS:
      return failure("renumber", "collision", details, true);
    case status.UNAUTHENTICATED:
    case status.PERMISSION_DENIED:
      return failure("fail", "unauthenticated", `${relay} refused the exec token (${details}). Compare SH_RELAY_EXEC_TOKEN on both sides`);
    case status.RESOURCE_EXHAUSTED:
      return failure("fail", "resource_exhausted", details);
    case status.INVALID_ARGUMENT:
    case status.OUT_OF_RANGE:
      return failure("fail", "invalid", details);
    case status.UNIMPLEMENTED:
      return failure("fail", "internal", `${relay} does not serve SandboxExec on this port (${details}). Use the exec port, 8444 by default (SH_RELAY_EXEC_PORT)`);
    case status.OK:
      return failure("redeliver", "unavailable", `${relay} closed the stream without an outcome`);
    default:
      return failure("redeliver", "unavailable", `${relay} cannot be reached or lost the connection (${status[code] ?? code}: ${details})`);
  }
}

const known: Record<string, TransportErrorCode> = {
  timeout: "timeout",
  aborted: "aborted",
  interrupted: "interrupted",
  busy: "busy",
  collision: "collision",
  spawn: "spawn",
  disconnected: "disconnected",
  output_lost: "output_lost",
  resource_exhausted: "resource_exhausted",
  invalid: "invalid",
};

/** Base workers send no code: their messages are fixed texts. */
function codeOf(error: ExecError): TransportErrorCode {
  const m = error.message;
  if (known[error.code]) return known[error.code] as TransportErrorCode;
  if (m.startsWith("timeout:")) return "timeout";
  if (m === "worker disconnected") return "disconnected";
  if (m.startsWith("busy")) return "busy";
  if (m.startsWith("req_id collision")) return "collision";
  if (/^(start bash|stdin pipe|stdout pipe|stderr pipe):/.test(m)) return "spawn";
  return "internal";
}

/** The worker's or relay's `error` event. Its message is passed on unchanged. */
export function fromExecError(error: ExecError): Failure {
  if (error.code === "journal_mismatch") return failure("describe", "interrupted", `interrupted: the worker was replaced (${error.message})`, true);
  const code = codeOf(error);
  const kill = error.kill;
  const next = code === "disconnected" ? "redeliver" : "fail";
  return { next, error: new TransportError(code, error.message, { kill, retryable: code === "disconnected" || code === "busy" }) };
}
