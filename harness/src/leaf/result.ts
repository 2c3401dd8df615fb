import type { Verdict } from "../store/session-log";

export type FailureReason = "no_verdict" | "invalid_verdict" | "bad_inputs" | "error" | "saturated";

/** A leaf that cannot give its answer; becomes `{status: "failed", reason, message}`. */
export class LeafFailure extends Error {
  override readonly name = "LeafFailure";

  constructor(readonly reason: FailureReason, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}

export interface Usage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  total: number;
}

export interface ExecRecord {
  execId?: string;
  /** null: ended by a signal or cut; missing: no exit status exists, see `error`. */
  exitCode?: number | null;
  stdoutBytes: number;
  stderrBytes: number;
  ms: number;
  deliveries?: number;
  error?: string;
  /** How ending the command went, where it had to be ended; `verified: false` = something of it may still run. */
  kill?: { verified: boolean; remaining: number; detail: string };
}

/** One tool call as evidence: what ran and how it ended, never what it said. */
export interface ToolRecord {
  tool: string;
  ok: boolean;
  ms: number;
  execs: ExecRecord[];
}

/** Additions to the base result: what else is known about the run. */
export interface Evidence {
  sandbox?: { kind: "pod" | "remote" | "local"; name: string };
  /** `served` is the id the endpoint answered with; `scripted` marks an endpoint that is no language model. */
  model?: { provider: string; id: string; served?: string; scripted?: boolean };
  usage?: Usage;
  tools?: ToolRecord[];
  turns?: number;
  elapsedMs?: number;
  traceId?: string;
  /** The answer comes from the session log; nothing was run for it. */
  replayed?: boolean;
}

export type Outcome =
  | { status: "done"; verdict: Verdict }
  | { status: "paused"; gateId: string; gate: { summary: string; proposed_action: string } }
  | { status: "aborted" }
  | { status: "responded"; text: string }
  | { status: "failed"; reason: FailureReason; message: string };

export type LeafResult = Outcome & Evidence;
