import { TransportError } from "./errors";
import { DEFAULT_OUTPUT_CAP, DEFAULT_TIMEOUT_S, type ExecOptions } from "./types";

export interface Limits {
  /** Seconds as asked; 0 = none. */
  timeout: number;
  /** Bytes per stream. */
  cap: number;
}

/** 23 days: far beyond any command, and below what setTimeout can count. */
const MAX_TIMEOUT_S = 2_000_000;

/** Checks what a caller passed and fills in the contract's defaults. Throws TransportError `invalid`. */
export function limitsOf(command: string, options: ExecOptions): Limits {
  const { timeout = DEFAULT_TIMEOUT_S, outputCap: cap = DEFAULT_OUTPUT_CAP } = options;
  if (command === "") throw new TransportError("invalid", "command is empty: pass the text to run with bash -c");
  if (command.includes("\0")) throw new TransportError("invalid", "command holds a NUL byte, which no argument can: pass binary data as stdin");
  if (!Number.isFinite(timeout) || timeout < 0 || timeout > MAX_TIMEOUT_S) {
    throw new TransportError("invalid", `timeout ${timeout} must be a number of seconds from 0 (no limit) to ${MAX_TIMEOUT_S}`);
  }
  if (!Number.isSafeInteger(cap) || cap < 0) throw new TransportError("invalid", `outputCap ${cap} must be a whole number of bytes, 0 or more`);
  return { timeout, cap };
}
