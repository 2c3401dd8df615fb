import { Stream, type End, type ExecError, type KillReport, type WorkerFrame } from "@dialout/proto";
import type { KillResult } from "../kill/hunt";
import type { Outcome } from "./outcome";

type Msg = NonNullable<WorkerFrame["msg"]>;
const frame = (msg: Msg): WorkerFrame => ({ msg });

export type StreamName = "stdout" | "stderr";

/** @param extended the relay announced protocol >= 1; otherwise no field beyond the base is set */
export function chunkFrame(reqId: bigint, stream: StreamName, data: Buffer, offset: number, extended: boolean): WorkerFrame {
  const value = { reqId, data, stream: stream === "stdout" ? Stream.STREAM_STDOUT : Stream.STREAM_STDERR, offset: extended ? BigInt(offset) : 0n };
  return frame({ $case: "chunk", value });
}

export function terminalFrame(reqId: bigint, o: Outcome, replayed: boolean, extended: boolean): WorkerFrame {
  if (o.kind === "error") {
    const value: ExecError = { reqId, message: o.message, code: extended ? o.code : "", kill: extended ? report(o.kill) : undefined, replayed: extended && replayed };
    return frame({ $case: "error", value });
  }
  const base: End = {
    reqId, exitCode: o.exitCode, stdoutTruncated: false, stderrTruncated: false, stdoutBytes: 0n, stderrBytes: 0n, signal: "", kill: undefined, replayed: false, durationMs: 0n,
  };
  const value: End = !extended ? base : {
    ...base,
    stdoutTruncated: o.stdoutTruncated,
    stderrTruncated: o.stderrTruncated,
    stdoutBytes: BigInt(o.stdoutBytes),
    stderrBytes: BigInt(o.stderrBytes),
    signal: o.signal,
    kill: report(o.kill),
    replayed,
    durationMs: BigInt(Math.round(o.durationMs)),
  };
  return frame({ $case: "end", value });
}

export const acceptedFrame = (reqId: bigint, state: string): WorkerFrame => frame({ $case: "accepted", value: { reqId, state } });
export const heartbeatFrame = (): WorkerFrame => frame({ $case: "heartbeat", value: {} });

function report(k: KillResult | undefined): KillReport | undefined {
  return k && { found: k.found, killed: k.killed, remaining: k.remaining, verified: k.verified, detail: k.detail };
}
