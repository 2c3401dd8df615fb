import { neverStarted, TransportError } from "./errors";
import { limitsOf } from "./options";
import { STOP_CLOSED } from "./outcome";
import { RelayExec, type RelayTiming } from "./relay-exec";
import { RelayLink, type RelayTls } from "./relay-link";
import type { ExecOptions, ExecResult, SandboxTransport } from "./types";

export interface GrpcRelayOptions extends Partial<RelayTiming> {
  /** HOST:PORT of the relay's exec listener. */
  addr: string;
  sandboxId: string;
  /** Bearer token of SandboxExec; left out only for a relay that takes callers without one. */
  execToken?: string;
  tls?: RelayTls;
  keepaliveMs?: number;
  /** For every exec that brings none of its own. */
  traceparent?: string;
}

export const RELAY_DEFAULTS: RelayTiming & { keepaliveMs: number } = {
  graceMs: 30_000,
  connectMs: 10_000,
  slackMs: 1_000,
  abortWaitMs: 5_000,
  floodMs: 5_000,
  keepaliveMs: 10_000,
};

/** What a relay takes in one message by default (SH_RELAY_MAX_MESSAGE_BYTES), less room for the other fields. */
const MAX_INPUT = 16 * 1024 * 1024 - 64 * 1024;

/** Runs commands on a worker that dialled a relay. A lost link is redelivered over; no command runs twice. */
export class GrpcRelayTransport implements SandboxTransport {
  private readonly link: RelayLink;
  private readonly timing: RelayTiming;
  private readonly running = new Map<RelayExec, Promise<unknown>>();
  private closing: Promise<void> | undefined;

  constructor(private readonly options: GrpcRelayOptions) {
    const { addr, sandboxId, execToken, tls } = options;
    const given = Object.fromEntries(Object.entries(options).filter(([, v]) => v !== undefined));
    const { keepaliveMs, ...timing } = { ...RELAY_DEFAULTS, ...given };
    this.timing = timing;
    this.link = new RelayLink({ addr, sandboxId, execToken, tls, keepaliveMs });
  }

  async exec(command: string, options: ExecOptions = {}): Promise<ExecResult> {
    const limits = limitsOf(command, options);
    const size = Buffer.byteLength(command) + (options.stdin?.length ?? 0);
    // Sent anyway it would end the connection, and the calls beside it with it.
    if (size > MAX_INPUT) throw new TransportError("invalid", `command and stdin are ${size} bytes, a relay takes at most ${MAX_INPUT} in one call: write the data in pieces`);
    if (this.closing) throw new TransportError("closed", "the transport is closed");
    if (options.signal?.aborted) throw new TransportError("aborted", "aborted", { kill: neverStarted, deliveries: 0 });
    const { addr, sandboxId, traceparent } = this.options;
    const exec = new RelayExec({ link: this.link, where: { addr, sandboxId }, timing: this.timing }, command, { traceparent, ...options }, limits);
    const outcome = exec.run();
    this.running.set(exec, outcome);
    try {
      return await outcome;
    } finally {
      this.running.delete(exec);
    }
  }

  close(): Promise<void> {
    return (this.closing ??= this.shutDown());
  }

  private async shutDown(): Promise<void> {
    for (const exec of this.running.keys()) exec.stop(STOP_CLOSED);
    await Promise.allSettled(this.running.values());
    this.link.close();
  }
}
