/** Which of a command's two output streams a chunk belongs to. Their relative order is not promised. */
export type StreamName = "stdout" | "stderr";

/** What was found when a command was killed. `verified` is true only when somebody looked and nothing was left. */
export interface KillReport {
  found: number;
  killed: number;
  remaining: number;
  verified: boolean;
  detail: string;
}

export interface ExecOptions {
  /** The command's whole stdin; it always sees EOF afterwards. Binary-safe. */
  stdin?: Buffer;
  /**
   * Output as it arrives, at most `outputCap` bytes of each stream plus the marker. Returning a promise holds the source
   * back until it settles; a rejection aborts the command.
   */
  onData?: (chunk: Buffer, stream: StreamName) => void | Promise<void>;
  /** Kills the command; exec then rejects with `aborted`. */
  signal?: AbortSignal;
  /** Seconds, fractions allowed; default 1800; 0 = no limit at either end. */
  timeout?: number;
  /** Bytes kept of each stream; default 8 MiB. It trips only when the command writes more than that. */
  outputCap?: number;
  /** W3C trace context handed to the worker; ignored by transports that cannot carry it. */
  traceparent?: string;
}

export interface ExecResult {
  /** Up to the cap; then a newline and `[output truncated]` when there was more. */
  stdout: Buffer;
  stderr: Buffer;
  /** 0 to 255; null = killed by a signal, or unknown because stdout was truncated. */
  exitCode: number | null;
  /** stdout was cut. Implies `exitCode === null`. */
  truncated: boolean;
  stderrTruncated: boolean;
  /** Present when the transport had to end the command, e.g. because it flooded on past its cap. */
  kill?: KillReport;
  /** The outcome came from the worker's journal: this delivery ran nothing. */
  replayed?: boolean;
  /** How often the command was handed over; 1 unless a link was lost. It ran at most once either way. */
  deliveries: number;
  execId: string;
}

export interface SandboxTransport {
  /**
   * Runs `bash -c command` in the sandbox. Resolves for every exit status; rejects with TransportError, or with node's own
   * spawn error when a local program is missing.
   */
  exec(command: string, options?: ExecOptions): Promise<ExecResult>;
  /** Ends what still runs (those calls reject with code `closed`) and frees the connection. Idempotent. */
  close(): Promise<void>;
}

export const DEFAULT_TIMEOUT_S = 1800;
export const DEFAULT_OUTPUT_CAP = 8 * 1024 * 1024;
export const TRUNCATION_MARKER = "\n[output truncated]";
