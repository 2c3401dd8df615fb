import { Backoff, type Logger } from "@dialout/common";
import { Redis } from "ioredis";
import { PRESENCE_KEY } from "./presence-record";

/** The presence hash. Every call settles within a few seconds; it rejects when Redis does not answer. */
export interface PresenceStore {
  readonly up: boolean;
  /** Called whenever Redis becomes reachable, also the first time. */
  onUp(listener: () => void): void;
  all(): Promise<Record<string, string>>;
  set(id: string, value: string): Promise<void>;
  /** Renews a record unless somebody else wrote a newer one; false then. `own`: values this session may have written. */
  refresh(id: string, value: string, lastWrittenMs: number, own: readonly string[]): Promise<boolean>;
  /** Deletes the record if it is one of `own`. */
  remove(id: string, own: readonly string[]): Promise<void>;
  close(): void;
}

const isOwn = `
local cur = redis.call('HGET', KEYS[1], ARGV[1])
local own = false
for i = FIRST, #ARGV do if ARGV[i] == cur then own = true end end
`;

const REMOVE = `${isOwn.replace("FIRST", "2")}
if own then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1`;

// A record that is older than our last write is a leftover, for example from a restored snapshot.
const REFRESH = `${isOwn.replace("FIRST", "4")}
if cur and not own then
  local ok, record = pcall(cjson.decode, cur)
  if ok and type(record) == 'table' then
    local seen = tonumber(record.lastSeenMs)
    if not seen or seen >= tonumber(ARGV[3]) then return 0 end
  end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1`;

const ANSWER_MS = 3_000;

export class RedisPresenceStore implements PresenceStore {
  private readonly redis: Redis;
  private readonly reconnect = new Backoff(250, 10_000);
  private reported: boolean | undefined;

  constructor(url: string, private readonly log: Logger) {
    this.redis = new Redis(url, {
      lazyConnect: true,
      connectTimeout: 5_000,
      commandTimeout: ANSWER_MS,
      // A connection that answers nothing is given up, not only the command: it may be half-open for many minutes.
      socketTimeout: ANSWER_MS + 1_000,
      // Nothing waits inside the client: what failed is known at once and tried again by whoever still wants it.
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      retryStrategy: () => this.reconnect.next(),
    });
    // The message only: a URL in an error could hold a password.
    this.redis.on("error", (e: NodeJS.ErrnoException) => this.report(false, e.code ?? e.message));
    this.redis.on("close", () => this.report(false, "connection closed"));
    this.redis.on("ready", () => {
      this.reconnect.reset();
      this.report(true, "ready");
    });
    // Rejects when the first try fails; the retries go on regardless.
    this.redis.connect().catch(() => undefined);
  }

  /** Logs changes only: a Redis that is away for an hour is one line. */
  private report(up: boolean, cause: string): void {
    if (this.reported === up) return;
    this.reported = up;
    if (up) this.log.info("redis is reachable, presence is kept");
    else this.log.warn({ cause }, "redis is not reachable (REDIS_URL): attached workers go on, their presence is written when it is back");
  }

  get up(): boolean {
    return this.redis.status === "ready";
  }

  onUp(listener: () => void): void {
    this.redis.on("ready", listener);
  }

  all(): Promise<Record<string, string>> {
    return this.redis.hgetall(PRESENCE_KEY);
  }

  async set(id: string, value: string): Promise<void> {
    await this.redis.hset(PRESENCE_KEY, id, value);
  }

  async refresh(id: string, value: string, lastWrittenMs: number, own: readonly string[]): Promise<boolean> {
    return (await this.redis.eval(REFRESH, 1, PRESENCE_KEY, id, value, lastWrittenMs, ...own)) === 1;
  }

  async remove(id: string, own: readonly string[]): Promise<void> {
    await this.redis.eval(REMOVE, 1, PRESENCE_KEY, id, ...own);
  }

  close(): void {
    this.redis.disconnect();
  }
}
