import { neverStarted, TransportError } from "./errors";
import { KubectlExec, type KubectlTiming } from "./kubectl-exec";
import { checkTarget, type KubectlOptions } from "./kubectl-target";
import { limitsOf } from "./options";
import { STOP_CLOSED } from "./outcome";
import type { ExecOptions, ExecResult, SandboxTransport } from "./types";

export type KubectlTransportOptions = KubectlOptions & Partial<KubectlTiming>;

export const KUBECTL_DEFAULTS: KubectlTiming = { slackMs: 2_000, abortWaitMs: 10_000, floodMs: 5_000 };

/** Runs commands in a pod, one `kubectl exec` each. A killed or timed-out command is gone in the pod too, not only here. */
export class KubectlTransport implements SandboxTransport {
  private readonly timing: KubectlTiming;
  private readonly running = new Map<KubectlExec, Promise<unknown>>();
  private closing: Promise<void> | undefined;

  constructor(private readonly options: KubectlTransportOptions) {
    checkTarget(options);
    const given = Object.fromEntries(Object.entries(options).filter(([, v]) => v !== undefined));
    this.timing = { ...KUBECTL_DEFAULTS, ...given };
  }

  async exec(command: string, options: ExecOptions = {}): Promise<ExecResult> {
    const limits = limitsOf(command, options);
    if (this.closing) throw new TransportError("closed", "the transport is closed");
    if (options.signal?.aborted) throw new TransportError("aborted", "aborted", { kill: neverStarted, deliveries: 0 });
    const exec = new KubectlExec(this.options, this.timing, command, options, limits);
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
  }
}
