// Redis over a stream of ours.
import Redis from "ioredis";
import type { Duplex } from "node:stream";
import { within } from "./bounds";
import type { StorePort } from "./ports";

const RECORDS = "sh:sandbox:records";
const COMMAND_MS = 10_000;
const TRIES = 3;

/** What ioredis asks of a connector. */
function connector(open: () => Promise<Duplex>) {
  return class {
    private stream: Duplex | undefined;
    check(): boolean {
      return true;
    }
    async connect(): Promise<Duplex> {
      return (this.stream = await open());
    }
    disconnect(): void {
      this.stream?.destroy();
    }
  };
}

/** Connects on first use; gives up after three tries. Close it, or the process stays. */
export class Store implements StorePort {
  private readonly redis: Redis;

  constructor(open: () => Promise<Duplex>, password?: string) {
    this.redis = new Redis({
      Connector: connector(open) as never,
      lazyConnect: true,
      password,
      // Settings of TCP sockets; the stream has its own bounds.
      connectTimeout: 0,
      noDelay: false,
      enableReadyCheck: false,
      maxRetriesPerRequest: TRIES,
      retryStrategy: (n) => (n < TRIES ? 200 * n : null),
    });
    // Every command that fails says why; without a listener the same would be thrown again here.
    this.redis.on("error", () => {});
  }

  async now(): Promise<number> {
    const [s, us] = await this.bounded("TIME", this.redis.time());
    return Number(s) * 1000 + Math.floor(Number(us) / 1000);
  }

  async presence(id: string): Promise<string | undefined> {
    return (await this.bounded(`HGET ${RECORDS}`, this.redis.hget(RECORDS, id))) ?? undefined;
  }

  exists(keys: readonly string[]): Promise<number> {
    return keys.length ? this.bounded("EXISTS", this.redis.exists(...keys)) : Promise.resolve(0);
  }

  async close(): Promise<void> {
    this.redis.disconnect();
  }

  private async bounded<T>(what: string, work: Promise<T>): Promise<T> {
    try {
      return await within(COMMAND_MS, what, work);
    } catch (e) {
      throw new Error(`Redis ${what}: ${(e as Error).message}`);
    }
  }
}
