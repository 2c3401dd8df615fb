import { Backoff, delay, type Logger } from "@dialout/common";
import Redis from "ioredis";

/** Redis did not answer in time, or refused. The message names the address, never the password. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}

/** One connection for the whole process: every leaf and lease shares it, so none can leak one. */
export class Store {
  readonly redis: Redis;
  private readonly address: string;
  private up: boolean | undefined;

  /** `timeoutMs` bounds every command, also those sent while the connection is down or the peer is frozen. */
  constructor(url: string, timeoutMs: number, private readonly log: Logger) {
    const { hostname, port } = new URL(url);
    this.address = `${hostname}:${port || 6379}`;
    this.redis = new Redis(url, {
      connectTimeout: timeoutMs,
      commandTimeout: timeoutMs,
      // A peer that went away without a word is dropped, and the connection made anew, instead of failing every command.
      socketTimeout: timeoutMs * 2,
      maxRetriesPerRequest: null,
      // A command that may have run must not be sent again behind our back.
      autoResendUnfulfilledCommands: false,
      retryStrategy: (times) => Math.min(2000, 100 * times),
      connectionName: "dialout-harness",
    });
    this.redis.on("ready", () => this.state(true));
    this.redis.on("error", (e: Error) => this.state(false, e.message));
    this.redis.on("close", () => this.state(false));
  }

  private state(up: boolean, cause?: string): void {
    if (up === this.up) return;
    this.up = up;
    if (up) this.log.info({ redis: this.address }, "Redis is reachable");
    else this.log.warn({ redis: this.address, cause }, "Redis is not reachable; trying again until it is");
  }

  /** Runs commands and turns whatever goes wrong into a StoreError. */
  async run<T>(work: (redis: Redis) => Promise<T>): Promise<T> {
    try {
      return await work(this.redis);
    } catch (e) {
      throw new StoreError(`Redis at ${this.address} did not do its part (${(e as Error).message}). Is it running? Check REDIS_URL`, { cause: e });
    }
  }

  close(): void {
    this.redis.disconnect();
  }
}

/** Tries a write that must not be lost again and again, for about `forMs`, before giving it up. */
export async function insist<T>(work: () => Promise<T>, forMs = 6000): Promise<T> {
  const backoff = new Backoff(200, 2000);
  const end = Date.now() + forMs;
  for (;;) {
    try {
      return await work();
    } catch (e) {
      const wait = backoff.next();
      if (Date.now() + wait > end) throw e;
      await delay(wait);
    }
  }
}
