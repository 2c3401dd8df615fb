import { refuse, type Refusal } from "./status";
import type { WorkerSession } from "./session";

/** Base peers are told no deadline; the reference worker sends a heartbeat every 15 s, so three of them it is. */
export const BASE_DEADLINE_MS = 45_000;

export interface Liveness {
  heartbeatMs: number;
  deadlineMs: number;
}

/** Which worker session holds which sandbox id. */
export class SessionRegistry {
  private readonly sessions = new Map<string, WorkerSession>();
  private lastSweepAt: number;

  constructor(private readonly live: Liveness, private readonly maxWorkers: number, now: number) {
    this.lastSweepAt = now;
  }

  get size(): number {
    return this.sessions.size;
  }

  get(id: string): WorkerSession | undefined {
    return this.sessions.get(id);
  }

  all(): WorkerSession[] {
    return [...this.sessions.values()];
  }

  /** How often `sweep` must run to keep its promises. Milliseconds. */
  get sweepMs(): number {
    return Math.max(20, Math.min(1000, this.live.heartbeatMs / 4, this.live.deadlineMs / 10));
  }

  /** Throws when one more id would be too many. A takeover adds none. */
  admit(id: string): void {
    if (!this.sessions.has(id) && this.sessions.size >= this.maxWorkers) throw refuse.tooMany("workers", this.maxWorkers, "SH_RELAY_MAX_WORKERS");
  }

  /** The newest authenticated session wins; the one before is told why. */
  add(session: WorkerSession): void {
    const older = this.sessions.get(session.id);
    this.sessions.set(session.id, session);
    older?.close(refuse.superseded(session.id));
  }

  /** True when the session still held its id, so that nobody holds it now. */
  remove(session: WorkerSession): boolean {
    return this.sessions.get(session.id) === session && this.sessions.delete(session.id);
  }

  /** Sends due heartbeats and ends sessions that were silent for too long. `now`: a monotonic clock in milliseconds. */
  sweep(now: number, ended: (session: WorkerSession, why: Refusal) => void): void {
    // After the process itself was stopped, everybody looks silent while their frames wait to be read.
    const wasStopped = now - this.lastSweepAt > Math.max(5 * this.sweepMs, this.live.deadlineMs / 4);
    this.lastSweepAt = now;
    for (const session of this.all()) {
      if (wasStopped) session.lastFrameAt = now;
      const deadline = deadlineOf(session, this.live.deadlineMs);
      if (now - session.lastFrameAt > deadline) {
        const why = refuse.liveness(deadline);
        session.close(why);
        ended(session, why);
      } else if (!session.base && now - session.lastHeartbeatAt >= this.live.heartbeatMs) {
        session.lastHeartbeatAt = now;
        session.send({ msg: { $case: "heartbeat", value: {} } });
      }
    }
  }

  closeAll(session: Refusal, execs: Refusal): void {
    for (const s of this.all()) s.close(session, execs);
  }
}

/** Silence allowed to a session. A base worker that never sent a heartbeat is watched by HTTP/2 pings alone. */
export function deadlineOf(session: Pick<WorkerSession, "base" | "sentHeartbeat">, deadlineMs: number): number {
  if (!session.base) return deadlineMs;
  return session.sentHeartbeat ? Math.max(deadlineMs, BASE_DEADLINE_MS) : Infinity;
}
