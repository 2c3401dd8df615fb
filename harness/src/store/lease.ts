import type { Logger } from "@dialout/common";
import type { Store } from "./redis";

// Time is Redis's own, so replicas whose clocks differ, or step, do not expire each other's leases.
const NOW = `local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
`;
const SWEEP = `${NOW}redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
`;
// Taking a lease twice is taking it once: the member's own entry does not count against the cap.
const ACQUIRE = `${SWEEP}local held = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not held and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[2])
return 1`;
// Only a lease that still exists is extended; a released or expired one stays gone.
const RENEW = `${SWEEP}if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], 'XX', now + ARGV[2], ARGV[1])
return 1`;
const LOAD = `${SWEEP}return redis.call('ZCARD', KEYS[1])`;

/** Leases in sorted sets: member = holder, score = expiry in ms since the epoch. */
export class Leases {
  constructor(private readonly store: Store, readonly ttlMs: number, readonly heartbeatMs: number, private readonly log: Logger) {}

  /** One of `cap` leases on `key`, kept alive until released; undefined when all are taken. */
  async acquire(key: string, cap: number, member: string): Promise<Lease | undefined> {
    return (await this.take(key, cap, member)) ? new Lease(this, key, cap, member, this.log) : undefined;
  }

  take(key: string, cap: number, member: string): Promise<boolean> {
    return this.store.run(async (r) => (await r.eval(ACQUIRE, 1, key, cap, member, this.ttlMs)) === 1);
  }

  renew(key: string, member: string): Promise<boolean> {
    return this.store.run(async (r) => (await r.eval(RENEW, 1, key, member, this.ttlMs)) === 1);
  }

  release(key: string, member: string): Promise<void> {
    return this.store.run(async (r) => void (await r.zrem(key, member)));
  }

  /** How many leases are active. */
  load(key: string): Promise<number> {
    return this.store.run(async (r) => Number(await r.eval(LOAD, 1, key)));
  }
}

export class Lease {
  private readonly timer: NodeJS.Timeout;
  private beat: Promise<void> = Promise.resolve();
  private released: Promise<void> | undefined;

  constructor(private readonly leases: Leases, readonly key: string, private readonly cap: number, readonly member: string, private readonly log: Logger) {
    this.timer = setInterval(() => {
      this.beat = this.beat.then(() => this.extend());
    }, leases.heartbeatMs);
  }

  /** Never rejects: a heartbeat that fails is followed by another, and the lease's holder is only told by the log. */
  private async extend(): Promise<void> {
    if (this.released) return;
    try {
      if (await this.leases.renew(this.key, this.member)) return;
      // Expired while Redis or this process was away. Someone else may hold the place by now: ask as everyone does.
      const back = !this.released && (await this.leases.take(this.key, this.cap, this.member));
      this.log.warn({ lease: this.key, holder: this.member, back }, back ? "lease had expired and was taken again" : "lease has expired and the place is taken; finishing without it");
    } catch (e) {
      this.log.warn({ lease: this.key, holder: this.member, cause: (e as Error).message }, "lease not renewed");
    }
  }

  /** Idempotent. Waits for a heartbeat under way, so nothing is added after the removal. A failure is logged: the expiry frees the place. */
  release(): Promise<void> {
    this.released ??= (async () => {
      clearInterval(this.timer);
      await this.beat;
      await this.leases.release(this.key, this.member).catch((e: Error) => {
        this.log.warn({ lease: this.key, holder: this.member, cause: e.message }, "lease not released; it expires by itself");
      });
    })();
    return this.released;
  }
}
