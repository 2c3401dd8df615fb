import type { Hello, ServerFrame } from "@dialout/proto";
import { Backoff, delay, SettingError, type Logger } from "@dialout/common";
import type { Registry } from "../exec/registry";
import { Outbox } from "../exec/outbox";
import type { Metrics } from "../metrics";
import { readToken, type WorkerSettings } from "../settings";
import { afterwards } from "./afterwards";
import { Session } from "./session";

/** Longest pause, before jitter, while callers may be waiting: several losses in a row must not outlast the time in which they hand their commands over again. */
const AWAITED_MS = 5_000;

/** Keeps the worker attached: dial, serve, wait, again. Only one session counts at a time; an older one's late events go nowhere. */
export class Link {
  private readonly stopping = new AbortController();
  private session: Session | undefined;
  /** Until when somebody whose command the last session lost may come again; performance.now(). */
  private awaitedUntil = 0;

  constructor(
    private readonly settings: WorkerSettings,
    private readonly hello: Hello,
    private readonly registry: Registry,
    private readonly log: Logger,
    private readonly metrics: Metrics,
    private readonly backoff = new Backoff(500, 30_000),
  ) {}

  /** Resolves with `stopped` after close(), or with `superseded` when another worker has taken the id over. */
  async run(): Promise<"stopped" | "superseded"> {
    const { sandboxId, relayAddr } = this.settings;
    while (!this.stopping.signal.aborted) {
      let token: string;
      try {
        token = readToken(this.settings.token);
      } catch (e) {
        if (!(e instanceof SettingError)) throw e;
        this.log.error(e.message);
        await delay(this.backoff.next(), this.stopping.signal);
        continue;
      }
      const end = await this.serve(token);
      if (this.stopping.signal.aborted) break;
      const verdict = afterwards(end, sandboxId, relayAddr);
      this.metrics.sessions.inc({ end: end.why });
      if (verdict.action === "exit") {
        this.log.error(verdict.message);
        return "superseded";
      }
      if (verdict.resetBackoff) this.backoff.reset();
      const ms = this.backoff.next(performance.now() < this.awaitedUntil ? AWAITED_MS : undefined);
      this.log[verdict.level]({ status: end.code, retry_ms: ms }, verdict.message);
      await delay(ms, this.stopping.signal);
    }
    return "stopped";
  }

  async close(): Promise<void> {
    this.stopping.abort();
    await this.session?.close("the worker is shutting down");
  }

  private async serve(token: string) {
    const session: Session = new Session(this.settings, token, this.hello, {
      attached: (protocol) => {
        this.metrics.attached.set(1);
        this.log.info({ relay: this.settings.relayAddr, sandbox_id: this.settings.sandboxId, protocol }, "attached, serving execs");
      },
      frame: (frame) => this.dispatch(frame, outbox),
      writable: () => outbox.drained(),
    });
    const outbox = new Outbox(session, undefined, (stream, n) => this.metrics.bytes.inc({ stream }, n));
    this.session = session;
    const end = await session.ended;
    this.metrics.attached.set(0);
    if (outbox.size > 0) this.awaitedUntil = performance.now() + this.settings.graceMs;
    this.registry.lost(outbox);
    return end;
  }

  private dispatch(frame: ServerFrame, outbox: Outbox): void {
    switch (frame.msg?.$case) {
      case "exec":
        return this.registry.deliver(frame.msg.value, outbox);
      case "abort":
        return this.registry.abort(frame.msg.value, outbox);
      case "detach":
        return this.registry.detach(frame.msg.value.reqId, outbox);
      case "credit":
        return this.registry.credit(frame.msg.value.reqId, frame.msg.value.bytes, outbox);
      default:
        return; // Heartbeat and Welcome were seen by the session; what is not known is an addition of a later relay
    }
  }
}
