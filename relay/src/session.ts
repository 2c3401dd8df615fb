import type { Logger } from "@dialout/common";
import { ExecError, type Exec, type Hello } from "@dialout/proto";
import { CreditLedger } from "./credit";
import { encodeFrame, execFrame } from "./exec-request";
import type { Metrics, Outcome } from "./metrics";
import { disconnectedEvent, expiryMs, isStale, settles, type Route } from "./route";
import { ExecSink, type QueueMeter, type SinkCall } from "./sink";
import { refuse, type Refusal } from "./status";
import { WireError, scanChunk, scanFrame, scanReqId, toEvent, type Frame } from "./wire";

/** The worker's stream as the session needs it. */
export interface WorkerLink {
  send(frame: Buffer): void;
  /** Bytes handed to `send` that the worker did not take yet. */
  readonly queued: number;
  /** Ends the stream, with OK when there is no refusal. */
  end(refusal: Refusal | undefined): void;
}

export interface SessionLimits {
  windowBytes: number;
  legacyBufferBytes: number;
  baseMaxMessageBytes: number;
  maxMessageBytes: number;
}

/** Who calls, for logs and metrics; how the delivery went. */
export interface DeliveryEvents {
  /** Nothing more will be written to the caller. */
  finished(how: Outcome): void;
  bytes(count: number): void;
}

/** One attached worker: forwards execs to it and its frames to the callers. Knows nothing of gRPC, tokens or Redis. */
export class WorkerSession {
  readonly routes = new Map<number, Route>();
  private readonly byExecId = new Map<string, Route>();
  private over = false;
  lastFrameAt: number;
  lastHeartbeatAt: number;
  /** A base worker is held to the liveness deadline only after it has shown that it sends heartbeats. */
  sentHeartbeat = false;

  constructor(
    readonly hello: Hello,
    readonly link: WorkerLink,
    private readonly limits: SessionLimits,
    private readonly meter: QueueMeter,
    private readonly metrics: Metrics,
    private readonly log: Logger,
    now: number,
  ) {
    this.lastFrameAt = now;
    this.lastHeartbeatAt = now;
  }

  get id(): string {
    return this.hello.sandboxId;
  }

  get base(): boolean {
    return this.hello.protocol < 1;
  }

  /** Hands an exec to the worker. Returns what to call when the caller goes away. Throws a Refusal. */
  deliver(exec: Exec, reqId: number, call: SinkCall, on: DeliveryEvents): () => void {
    const existing = this.routes.get(reqId);
    if (existing && (exec.execId === "" || existing.execId !== exec.execId)) throw refuse.inFlight(reqId, this.id);
    const twin = exec.execId ? this.byExecId.get(exec.execId) : undefined;
    if (twin && twin !== existing) throw refuse.invalid(`exec_id ${exec.execId} is in flight under req_id ${twin.reqId}: a redelivery keeps its req_id`);
    const frame = execFrame(exec, this.hello.protocol, this.limits.windowBytes);
    if (this.base && frame.length > this.limits.baseMaxMessageBytes) throw refuse.tooLarge(frame.length, this.limits.baseMaxMessageBytes);
    // The heartbeat keeps a silent worker from being believed in; this keeps it from collecting everybody's stdin meanwhile.
    if (this.link.queued > 2 * this.limits.maxMessageBytes) throw refuse.workerBusy(this.id);

    const route = existing ?? this.addRoute(exec, reqId);
    this.attachSink(route, call, on);
    this.link.send(frame);
    const mine = route.sink;
    return () => this.callerGone(route, mine);
  }

  private addRoute(exec: Exec, reqId: number): Route {
    const route: Route = { reqId, execId: exec.execId, graceS: exec.graceS, sink: undefined, credit: undefined, deliveries: 0, unanswered: 0, aborted: false, expiry: undefined };
    this.routes.set(reqId, route);
    this.meter.routes++;
    if (route.execId) this.byExecId.set(route.execId, route);
    return route;
  }

  private attachSink(route: Route, call: SinkCall, on: DeliveryEvents): void {
    const older = route.sink;
    route.sink = undefined;
    if (older) {
      this.metrics.redeliveries.inc({ kind: "took_over" });
      older.fail(refuse.takenOver());
    }
    clearTimeout(route.expiry);
    route.expiry = undefined;
    route.aborted = false;
    route.deliveries++;
    // A base worker does not answer Accepted; it has no resume offsets either, so there is nothing to wait for.
    if (!this.base) route.unanswered++;
    const credit = this.base ? undefined : new CreditLedger(this.limits.windowBytes);
    route.credit = credit;
    const bound = this.base ? this.limits.legacyBufferBytes : Math.max(2 * this.limits.windowBytes, this.limits.legacyBufferBytes);
    const sink: ExecSink = new ExecSink(call, bound, !this.base, this.meter, {
      taken: (bytes) => {
        on.bytes(bytes);
        const grant = credit?.taken(bytes) ?? 0;
        if (grant && route.credit === credit && this.routes.get(route.reqId) === route) {
          this.send({ msg: { $case: "credit", value: { reqId: BigInt(route.reqId), bytes: BigInt(grant) } } });
        }
      },
      finished: () => on.finished(sink.outcome),
    });
    route.sink = sink;
  }

  /** The caller cancelled, timed out or vanished: the command stops, unless its caller asked for time to come back. */
  private callerGone(route: Route, sink: ExecSink | undefined): void {
    sink?.drop("cancelled");
    if (route.sink !== sink || this.routes.get(route.reqId) !== route) return;
    route.sink = undefined;
    if (!route.aborted) {
      if (!this.base && route.execId && route.graceS > 0) {
        this.metrics.detaches.inc();
        this.send({ msg: { $case: "detach", value: { reqId: BigInt(route.reqId) } } });
      } else this.abort(route.reqId, route.execId, "cancel");
    }
    route.expiry = setTimeout(() => {
      this.log.warn({ sandbox_id: this.id, req_id: route.reqId, exec_id: route.execId }, "the worker sent no terminal frame, forgetting the exec");
      this.forget(route);
    }, expiryMs(route));
    route.expiry.unref();
  }

  /** Sends an Abort, also for an id that the relay does not know. An exec_id that names another command stops nothing. */
  abort(reqId: number, execId: string, cause: "rpc" | "cancel" | "overflow"): void {
    const named = execId ? this.byExecId.get(execId) : undefined;
    const route = named ?? this.routes.get(reqId);
    if (route && execId && route.execId && route.execId !== execId) return;
    if (route) route.aborted = true;
    this.metrics.aborts.inc({ cause });
    this.send({ msg: { $case: "abort", value: { reqId: BigInt(route?.reqId ?? reqId), execId: this.base ? "" : execId } } });
  }

  send(frame: Parameters<typeof encodeFrame>[0]): void {
    if (!this.over) this.link.send(encodeFrame(frame));
  }

  /** Takes one frame of the worker. A frame that cannot be decoded ends the session. */
  frame(bytes: Buffer, now: number): void {
    if (this.over) return;
    this.lastFrameAt = now;
    try {
      this.forward(scanFrame(bytes));
    } catch (e) {
      if (!(e instanceof WireError)) throw e;
      this.close(refuse.invalid(`frame cannot be decoded: ${e.message}`));
    }
  }

  private forward(frame: Frame): void {
    switch (frame.kind) {
      case "chunk":
        return this.chunk(frame);
      case "accepted": {
        const route = this.routes.get(scanReqId(frame.body));
        if (!route) return;
        route.unanswered = Math.max(0, route.unanswered - 1);
        // To a base caller this would be an event without content.
        if (route.execId && !isStale(route)) route.sink?.event(toEvent(frame));
        return;
      }
      case "end":
      case "error":
        return this.terminal(frame);
      case "heartbeat":
        this.sentHeartbeat = true;
        return;
      case "hello":
      case "unknown":
        return;
    }
  }

  private chunk(frame: Frame): void {
    const view = scanChunk(frame.body);
    const route = this.routes.get(view.reqId);
    if (!route?.sink || isStale(route)) return;
    route.unanswered = 0;
    this.metrics.bytesIn.inc(view.data.length);
    if (route.sink.chunk(frame, view)) return;
    const { sink } = route;
    route.sink = undefined;
    this.abort(route.reqId, route.execId, "overflow");
    // The route stays, so that the id is not given away while the worker still has the command.
    route.expiry = setTimeout(() => this.forget(route), expiryMs(route));
    route.expiry.unref();
    sink.fail(refuse.outran(this.limits.legacyBufferBytes));
  }

  private terminal(frame: Frame): void {
    const route = this.routes.get(scanReqId(frame.body));
    const kind = frame.kind === "end" ? "end" : "error";
    if (!route || !settles(route, kind, () => errorCode(frame.body))) return;
    this.forget(route);
    route.sink?.finish(toEvent(frame), kind);
  }

  private forget(route: Route): void {
    clearTimeout(route.expiry);
    if (this.routes.get(route.reqId) === route) {
      this.routes.delete(route.reqId);
      this.meter.routes--;
    }
    if (this.byExecId.get(route.execId) === route) this.byExecId.delete(route.execId);
  }

  /** Ends the session: every open exec gets `worker disconnected`, or `execs` as its status. Safe to call again. */
  close(refusal: Refusal | undefined, execs?: Refusal): void {
    if (this.over) return;
    this.over = true;
    for (const route of [...this.routes.values()]) {
      this.forget(route);
      if (execs) route.sink?.fail(execs);
      else route.sink?.finish(disconnectedEvent(route.reqId), "disconnected");
    }
    this.link.end(refusal);
  }

  get closed(): boolean {
    return this.over;
  }
}

function errorCode(body: Buffer): string {
  try {
    return ExecError.decode(body).code;
  } catch (e) {
    throw new WireError((e as Error).message);
  }
}
