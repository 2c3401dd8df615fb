import { AbortRequest, AbortResponse, DescribeRequest, DescribeResponse } from "@dialout/proto";
import type { ServerUnaryCall, ServerWritableStream, sendUnaryData } from "@grpc/grpc-js";
import { callerOf } from "./caller-auth";
import type { RelayContext } from "./context";
import { checkExecId, checkExecRequest, checkReqId, decodeRequest, viewOf } from "./exec-request";
import { checkSandboxId } from "./hello";
import type { Outcome } from "./metrics";
import type { SinkCall } from "./sink";
import { Refusal, refuse } from "./status";

type ExecCall = ServerWritableStream<Buffer, Buffer>;
type UnaryCall = ServerUnaryCall<Buffer, Buffer>;

const ABORTED = viewOf(AbortResponse.encode({}).finish());

/** Serves SandboxExec. The exec token was checked before any of this runs (caller-auth.ts). */
export class ExecService {
  constructor(private readonly relay: RelayContext) {}

  readonly exec = (call: ExecCall): void => {
    const { settings, registry, metrics, meter, log } = this.relay;
    // Without a listener a write that fails late would end the process; the cancel handler does what there is to do.
    call.on("error", () => undefined);
    const caller = callerOf(call.metadata);
    const started = this.relay.now();
    let ids: { sandbox_id?: string; req_id?: number; exec_id?: string; delivery?: number; trace?: string } = {};
    try {
      if (this.relay.draining) throw refuse.shuttingDown();
      const { sandboxId, exec, reqId } = checkExecRequest(call.request);
      ids = { sandbox_id: sandboxId, req_id: reqId, exec_id: exec.execId || undefined, delivery: exec.delivery || undefined, trace: exec.traceparent || undefined };
      const session = registry.get(sandboxId);
      if (!session) throw refuse.notAttached(sandboxId);
      if (Math.max(this.relay.openCalls, meter.routes) >= settings.maxExecs) throw refuse.tooMany("execs", settings.maxExecs, "SH_RELAY_MAX_EXECS");

      let bytes = 0;
      const finished = (outcome: Outcome) => {
        this.relay.openCalls--;
        const ms = Math.round(this.relay.now() - started);
        metrics.execs.inc({ caller, outcome });
        metrics.execSeconds.observe({ outcome }, ms / 1000);
        log.info({ ...ids, caller, outcome, ms, bytes }, "exec finished");
      };
      const taken = (count: number) => {
        bytes += count;
        metrics.bytesOut.inc(count);
      };
      const callerGone = session.deliver(exec, reqId, sinkCallOf(call), { finished, bytes: taken });
      this.relay.openCalls++;
      if (exec.delivery > 1) metrics.redeliveries.inc({ kind: "delivered" });
      log.debug({ ...ids, caller }, "exec delivered");
      call.on("cancelled", callerGone);
      // The caller may have gone before the listener was there.
      if (call.cancelled) callerGone();
    } catch (e) {
      fail(call, this.refused("Exec", e, { ...ids, caller }));
    }
  };

  readonly abort = (call: UnaryCall, reply: sendUnaryData<Buffer>): void => {
    const caller = callerOf(call.metadata);
    try {
      const request = decodeRequest("AbortRequest", (b) => AbortRequest.decode(b), call.request);
      checkSandboxId(request.sandboxId);
      checkExecId(request.execId);
      const reqId = checkReqId(request.reqId);
      this.relay.registry.get(request.sandboxId)?.abort(reqId, request.execId, "rpc");
      this.relay.log.info({ sandbox_id: request.sandboxId, req_id: reqId, exec_id: request.execId || undefined, caller }, "abort asked");
      reply(null, ABORTED);
    } catch (e) {
      const { code, details } = this.refused("Abort", e, { caller });
      reply({ code, details });
    }
  };

  readonly describe = (call: UnaryCall, reply: sendUnaryData<Buffer>): void => {
    try {
      const { sandboxId } = decodeRequest("DescribeRequest", (b) => DescribeRequest.decode(b), call.request);
      checkSandboxId(sandboxId);
      const hello = this.relay.registry.get(sandboxId)?.hello;
      if (!hello) throw refuse.notAttached(sandboxId);
      const { protocol, instanceId, journalId, capacityMax, capabilities, labels } = hello;
      reply(null, viewOf(DescribeResponse.encode({ protocol: Math.min(protocol, 1), instanceId, journalId, capacityMax, capabilities, labels }).finish()));
    } catch (e) {
      const { code, details } = this.refused("Describe", e, { caller: callerOf(call.metadata) });
      reply({ code, details });
    }
  };

  /** Every error of a call becomes a status: a Refusal its own, anything else is a bug of ours and is logged as one. */
  private refused(method: string, e: unknown, fields: object): Pick<Refusal, "code" | "details"> {
    const refusal = e instanceof Refusal ? e : refuse.internal();
    this.relay.metrics.refused.inc({ method, reason: refusal.reason });
    if (refusal === e) this.relay.log.warn({ ...fields, reason: refusal.reason }, `${method} refused: ${refusal.details}`);
    else this.relay.log.error({ ...fields, err: e }, `${method} failed`);
    return refusal;
  }
}

/** grpc-js writes trailers for an `error` event, not for a destroyed call. */
function fail(call: ExecCall, { code, details }: Pick<Refusal, "code" | "details">): void {
  call.emit("error", { code, details });
}

function sinkCallOf(call: ExecCall): SinkCall {
  return {
    // The library calls back when the message went into the peer's HTTP/2 window, which is later than `write` returning.
    write: (event, taken) => void call.write(event, (e?: Error | null) => {
      if (!e) taken();
    }),
    end: () => call.end(),
    fail: (refusal) => fail(call, refusal),
  };
}
