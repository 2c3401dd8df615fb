import { Backoff, type Logger } from "@dialout/common";
import type { Hello } from "@dialout/proto";
import type { Metrics } from "./metrics";
import { isOwnGhost, presenceJson } from "./presence-record";
import type { PresenceStore } from "./presence-store";

/** What Redis should say about one sandbox id, and what it may say. */
interface Entry {
  /** undefined = nobody is attached. */
  hello: Hello | undefined;
  /** A new session has not been written yet; it replaces whatever is there. */
  fresh: boolean;
  /** Values of ours that may be in Redis: the last one known to be written, and those whose fate is unknown. */
  own: string[];
  lastWrittenMs: number;
  dirty: boolean;
  busy: boolean;
  backoff: Backoff;
  retry: NodeJS.Timeout | undefined;
}

/** More unanswered writes than this cannot all be in doubt: the connection is given up long before. */
const MAX_DOUBTS = 8;

/**
 * Keeps Redis in step with who is attached. Callers say what is true and go on; one write per id is under way at a time, a
 * failed one is tried again after 250 ms, doubling to 10 s, until it is done or no longer true.
 */
export class Presence {
  private readonly entries = new Map<string, Entry>();
  private reaped = false;
  private readonly timer: NodeJS.Timeout;
  private readonly idle = new Set<() => void>();

  constructor(
    private readonly store: PresenceStore,
    private readonly relayAddr: string | undefined,
    refreshMs: number,
    private readonly metrics: Pick<Metrics, "presenceFailures">,
    private readonly log: Logger,
    private readonly clock: () => number = Date.now,
  ) {
    this.timer = setInterval(() => this.refreshAll(), refreshMs);
    this.timer.unref();
    store.onUp(() => {
      void this.reap();
      // Redis may have lost everything; whoever waits for a retry need not wait longer.
      this.refreshAll();
    });
  }

  attached(hello: Hello): void {
    const entry = this.entries.get(hello.sandboxId) ?? this.newEntry(hello.sandboxId);
    entry.hello = hello;
    entry.fresh = true;
    this.touch(hello.sandboxId, entry);
  }

  /** The id has no session any more. */
  detached(id: string): void {
    const entry = this.entries.get(id);
    if (!entry) return;
    entry.hello = undefined;
    this.touch(id, entry);
  }

  /** Ends the refreshing, then waits up to `ms` until what was said is written. */
  async stop(ms: number): Promise<void> {
    clearInterval(this.timer);
    if ([...this.entries.values()].some((e) => e.dirty || e.busy)) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.idle.add(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    for (const entry of this.entries.values()) clearTimeout(entry.retry);
    this.store.close();
  }

  private newEntry(id: string): Entry {
    const entry: Entry = { hello: undefined, fresh: true, own: [], lastWrittenMs: 0, dirty: false, busy: false, backoff: new Backoff(250, 10_000), retry: undefined };
    this.entries.set(id, entry);
    return entry;
  }

  private refreshAll(): void {
    for (const [id, entry] of this.entries) this.touch(id, entry);
  }

  private touch(id: string, entry: Entry): void {
    entry.dirty = true;
    clearTimeout(entry.retry);
    entry.retry = undefined;
    void this.work(id, entry);
  }

  private async work(id: string, entry: Entry): Promise<void> {
    if (entry.busy) return;
    entry.busy = true;
    while (entry.dirty) {
      entry.dirty = false;
      try {
        await (entry.hello ? this.write(id, entry, entry.hello) : this.remove(id, entry));
        entry.backoff.reset();
      } catch (e) {
        this.metrics.presenceFailures.inc();
        const ms = entry.backoff.next();
        this.log.debug({ sandbox_id: id, retry_ms: ms, cause: (e as Error).message }, "presence write failed");
        entry.dirty = true;
        entry.retry = setTimeout(() => this.touch(id, entry), ms);
        entry.retry.unref();
        break;
      }
    }
    entry.busy = false;
    if (!entry.hello && !entry.dirty && this.entries.get(id) === entry) this.entries.delete(id);
    if (![...this.entries.values()].some((e) => e.dirty || e.busy)) for (const done of this.idle) done();
  }

  private async write(id: string, entry: Entry, hello: Hello): Promise<void> {
    const now = this.clock();
    const value = presenceJson(hello, now, this.relayAddr);
    const before = [...entry.own];
    // In doubt until answered: a write that timed out may still have happened.
    entry.own = [...entry.own.slice(-MAX_DOUBTS), value];
    if (entry.fresh) {
      await this.store.set(id, value);
      if (entry.hello === hello) entry.fresh = false;
    } else if (!(await this.store.refresh(id, value, entry.lastWrittenMs, before))) {
      this.log.warn({ sandbox_id: id }, "another relay holds the presence record of this sandbox, leaving it alone");
      entry.own = before;
      return;
    }
    entry.own = [value];
    entry.lastWrittenMs = now;
  }

  private async remove(id: string, entry: Entry): Promise<void> {
    if (entry.own.length > 0) await this.store.remove(id, entry.own);
    entry.own = [];
  }

  /** Once per life: deletes what an earlier life of this relay left behind. A session that attaches meanwhile is safe. */
  private async reap(): Promise<void> {
    if (this.reaped) return;
    this.reaped = true;
    try {
      let count = 0;
      for (const [id, value] of Object.entries(await this.store.all())) {
        if (this.entries.get(id)?.own.includes(value) || !isOwnGhost(value, this.relayAddr)) continue;
        await this.store.remove(id, [value]);
        count++;
      }
      if (count) this.log.info({ count }, "removed presence records of an earlier run");
    } catch (e) {
      this.reaped = false;
      this.log.debug({ cause: (e as Error).message }, "cannot look for old presence records yet");
      setTimeout(() => void this.reap(), 1_000).unref();
    }
  }
}
