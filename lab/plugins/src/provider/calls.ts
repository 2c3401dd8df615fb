// The calls under way, so that a cancel reaches every one of them.
import { UserError, Cancelled } from "./errors";

export class ActiveCalls {
  private readonly active = new Map<AbortController, Promise<unknown>>();
  private cancelled: Cancelled | undefined;

  /** Runs `work`; its signal is aborted by cancel() and after `timeoutSeconds` (0 = none). */
  async run<T>(timeoutSeconds: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.cancelled) throw this.cancelled;
    const controller = new AbortController();
    const timer = timeoutSeconds > 0
      ? setTimeout(() => controller.abort(new UserError(`timed out after ${timeoutSeconds} s (customTimeouts)`)), timeoutSeconds * 1000)
      : undefined;
    const running = work(controller.signal);
    this.active.set(controller, running.catch(() => undefined));
    try {
      return await running;
    } finally {
      clearTimeout(timer);
      this.active.delete(controller);
    }
  }

  /** Later calls are refused as well. Resolves when all have ended. */
  async cancel(reason: Cancelled): Promise<void> {
    this.cancelled = reason;
    const running = [...this.active.values()];
    for (const controller of this.active.keys()) controller.abort(reason);
    await Promise.all(running);
  }

  /** On a signal, or when Pulumi is gone without one, commands must not live on without anybody to report to. */
  cancelOnExit(): void {
    const end = (why: string): void => {
      void this.cancel(new Cancelled(why)).then(() => process.exit(0));
    };
    process.once("SIGTERM", () => end("terminated"));
    process.once("SIGINT", () => end("interrupted"));
    const parent = process.ppid;
    setInterval(() => {
      if (process.ppid !== parent) end("Pulumi is gone");
    }, 1000).unref();
  }
}
