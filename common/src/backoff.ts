/** Exponential backoff with jitter: `base`, doubling to `max`, plus up to 50 % at random. Milliseconds. */
export class Backoff {
  private attempt = 0;

  constructor(
    private readonly base = 500,
    private readonly max = 30_000,
    private readonly random: () => number = Math.random,
  ) {}

  /** @param atMost bound of this pause without its jitter; how far it has grown goes on being counted. */
  next(atMost = this.max): number {
    const plain = Math.min(this.max, atMost, this.base * 2 ** Math.min(this.attempt++, 30));
    return Math.round(plain * (1 + this.random() * 0.5));
  }

  reset(): void {
    this.attempt = 0;
  }
}

/** Resolves after `ms`, or at once when the signal aborts; never rejects and leaves no timer behind. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}
