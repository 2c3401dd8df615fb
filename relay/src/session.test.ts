import { createLogger } from "@dialout/common";
import { Exec, ExecEvent, Hello, ServerFrame, WorkerFrame } from "@dialout/proto";
import { describe, expect, it } from "vitest";
import { Metrics } from "./metrics";
import { WorkerSession } from "./session";
import type { Refusal } from "./status";

const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

/** A session with a scripted worker and callers that take everything at once unless `stall`. */
function setUp(protocol = 1, stall = false) {
  const meter = { bytes: 0, routes: 0 };
  const metrics = new Metrics({ attached: () => 0, inFlight: () => 0, queue: meter, redisUp: () => true });
  const sent: NonNullable<ServerFrame["msg"]>[] = [];
  const ends: (Refusal | undefined)[] = [];
  const link = { queued: 0, send: (b: Buffer) => void sent.push(ServerFrame.decode(b).msg as NonNullable<ServerFrame["msg"]>), end: (r: Refusal | undefined) => void ends.push(r) };
  const limits = { windowBytes: 65_536, legacyBufferBytes: 100_000, baseMaxMessageBytes: 1_000, maxMessageBytes: 10_000 };
  const session = new WorkerSession(Hello.fromPartial({ sandboxId: "sbx", protocol }), link, limits, meter, metrics, createLogger("t", "silent"), 0);
  const deliver = (exec: Partial<Exec>) => {
    const events: NonNullable<ExecEvent["event"]>[] = [];
    const state = { events, ended: false, failed: undefined as Refusal | undefined, outcome: "", gone: () => {}, kinds: () => events.map((e) => e.$case) };
    state.gone = session.deliver(Exec.fromPartial({ reqId: 1n, ...exec }), Number(exec.reqId ?? 1n), {
      write: (b, taken) => {
        events.push(ExecEvent.decode(b).event as NonNullable<ExecEvent["event"]>);
        if (!stall) taken();
      },
      end: () => (state.ended = true),
      fail: (r) => (state.failed = r),
    }, { finished: (how) => (state.outcome = how), bytes: () => undefined });
    return state;
  };
  const frame = (msg: WorkerFrame["msg"]) => session.frame(Buffer.from(WorkerFrame.encode({ msg }).finish()), 1);
  const chunk = (reqId: bigint, data: string | Buffer, offset = 0n) => frame({ $case: "chunk", value: { reqId, data: Buffer.from(data), stream: 1, offset } });
  const end = (reqId: bigint, exitCode = 0) => frame(WorkerFrame.fromPartial({ msg: { $case: "end", value: { reqId, exitCode } } }).msg);
  const error = (reqId: bigint, message: string, code = "") => frame(WorkerFrame.fromPartial({ msg: { $case: "error", value: { reqId, message, code } } }).msg);
  const accepted = (reqId: bigint) => frame({ $case: "accepted", value: { reqId, state: "" } });
  return { session, meter, link, sent, ends, deliver, chunk, end, error, accepted, kinds: () => sent.map((m) => m.$case) };
}

describe("frames of the worker", () => {
  it("go to the exec they name, and to nobody once it is settled", () => {
    const t = setUp();
    const [a, b] = [t.deliver({ reqId: 1n }), t.deliver({ reqId: 2n })];
    t.chunk(2n, "for b");
    t.end(1n, 3);
    t.end(1n, 4);
    t.chunk(99n, "for nobody");
    expect(a.kinds()).toEqual(["end"]);
    expect(a.events[0]?.value).toMatchObject({ exitCode: 3 });
    expect(b.kinds()).toEqual(["chunk"]);
    expect([a.ended, b.ended]).toEqual([true, false]);
    expect(t.meter.routes).toBe(1);
  });

  it("that cannot be decoded end the session, and every exec with an event", () => {
    const t = setUp();
    const a = t.deliver({});
    t.session.frame(Buffer.from([0x1a, 0x02, 0xff, 0xff]), 1);
    expect(t.ends[0]?.details).toMatch(/frame cannot be decoded/);
    expect(a.events[0]?.value).toMatchObject({ message: "worker disconnected", code: "disconnected" });
    expect(t.meter).toEqual({ bytes: 0, routes: 0 });
  });

  it("`accepted` is kept from a base caller", () => {
    const t = setUp();
    const [base, ours] = [t.deliver({ reqId: 1n }), t.deliver({ reqId: 2n, execId: uuid(2) })];
    t.accepted(1n);
    t.accepted(2n);
    expect(base.kinds()).toEqual([]);
    expect(ours.kinds()).toEqual(["accepted"]);
  });
});

describe("one req_id", () => {
  it("is refused under another exec_id, and for two base callers", () => {
    const t = setUp();
    t.deliver({ execId: uuid(1) });
    expect(() => t.deliver({ execId: uuid(2) })).toThrow(/^req_id 1 already in flight for sandbox 'sbx'/);
    expect(() => t.deliver({})).toThrow(/^req_id 1 already in flight/);
    expect(() => t.deliver({ reqId: 2n, execId: uuid(1) })).toThrow(/keeps its req_id/);
    expect(t.meter.routes).toBe(1);
  });

  it("is free again after the terminal frame", () => {
    const t = setUp();
    t.deliver({});
    t.end(1n);
    expect(() => t.deliver({})).not.toThrow();
  });
});

describe("a redelivery of the same exec on the same session", () => {
  const again = () => {
    const t = setUp();
    const first = t.deliver({ execId: uuid(1), graceS: 5 });
    t.accepted(1n);
    const second = t.deliver({ execId: uuid(1), delivery: 2 });
    return { t, first, second };
  };

  it("closes the older stream with ABORTED and hands the exec to the worker again", () => {
    const { t, first, second } = again();
    expect(first.failed?.reason).toBe("taken_over");
    expect(first.outcome).toBe("taken_over");
    t.accepted(1n);
    t.end(1n);
    expect(second.kinds()).toEqual(["accepted", "end"]);
    expect(t.kinds()).toEqual(["exec", "exec"]);
  });

  it("sees nothing of the older delivery's output, end or timeout: the worker replays them", () => {
    const { t, second } = again();
    t.chunk(1n, "old", 100n);
    t.end(1n);
    t.error(1n, "timeout:1", "timeout");
    expect(second.kinds()).toEqual([]);
    t.accepted(1n);
    t.chunk(1n, "new");
    t.end(1n);
    expect(second.kinds()).toEqual(["accepted", "chunk", "end"]);
  });

  it("gets the worker's refusal of it", () => {
    const { t, second } = again();
    t.error(1n, "interrupted by a restart", "interrupted");
    expect(second.events[0]?.value).toMatchObject({ code: "interrupted" });
  });

  it("does not take the answer to the first delivery for its own", () => {
    const t = setUp();
    t.deliver({ execId: uuid(1) });
    const second = t.deliver({ execId: uuid(1), delivery: 2 });
    t.error(1n, "busy: queue full", "busy");
    expect(second.kinds()).toEqual([]);
    t.accepted(1n);
    t.end(1n);
    expect(second.kinds()).toEqual(["accepted", "end"]);
  });

  it("leaves the newer stream alone when the older caller then goes away", () => {
    const { t, first, second } = again();
    first.gone();
    t.accepted(1n);
    t.end(1n);
    expect(second.outcome).toBe("end");
    expect(t.kinds()).toEqual(["exec", "exec"]);
  });
});

describe("a caller that goes away", () => {
  it.each([
    ["with exec_id and grace", 1, { execId: uuid(1), graceS: 5 }, "detach"],
    ["without grace", 1, { execId: uuid(1) }, "abort"],
    ["without exec_id", 1, { graceS: 5 }, "abort"],
    ["on a base worker", 0, { execId: uuid(1), graceS: 5 }, "abort"],
  ])("%s", (_, protocol, exec, sends) => {
    const t = setUp(protocol as number);
    const a = t.deliver(exec as Partial<Exec>);
    a.gone();
    a.gone();
    expect(t.kinds()).toEqual(["exec", sends]);
    expect(a.outcome).toBe("cancelled");
    expect(t.meter.routes).toBe(1);
    t.end(1n);
    expect(t.meter.routes).toBe(0);
  });

  it("after it asked to abort sends no second word", () => {
    const t = setUp();
    const a = t.deliver({ execId: uuid(1), graceS: 5 });
    t.session.abort(1, uuid(1), "rpc");
    a.gone();
    expect(t.kinds()).toEqual(["exec", "abort"]);
  });
});

describe("abort", () => {
  it("is forwarded for an unknown id, and to a base worker without exec_id", () => {
    const t = setUp(0);
    t.session.abort(77, uuid(1), "rpc");
    expect(t.sent).toEqual([{ $case: "abort", value: { reqId: 77n, execId: "" } }]);
  });

  it("goes by exec_id when it has one, and never hits another command", () => {
    const t = setUp();
    t.deliver({ reqId: 1n, execId: uuid(1) });
    t.session.abort(1, uuid(9), "rpc");
    expect(t.kinds()).toEqual(["exec"]);
    t.session.abort(0, uuid(1), "rpc");
    expect(t.sent.at(-1)).toEqual({ $case: "abort", value: { reqId: 1n, execId: uuid(1) } });
  });
});

describe("flow", () => {
  it("grants a protocol 1 worker what the caller took", () => {
    const t = setUp();
    t.deliver({});
    t.chunk(1n, Buffer.alloc(32_768));
    expect(t.sent.at(-1)).toEqual({ $case: "credit", value: { reqId: 1n, bytes: 32_768n } });
  });

  it("grants nothing to a base worker, nor while the caller takes nothing", () => {
    const base = setUp(0);
    base.deliver({});
    base.chunk(1n, Buffer.alloc(32_768));
    const stalled = setUp(1, true);
    stalled.deliver({});
    stalled.chunk(1n, Buffer.alloc(32_768));
    expect([base.kinds(), stalled.kinds()]).toEqual([["exec"], ["exec"]]);
  });

  it("fails only the exec whose reader does not keep up, and aborts it", () => {
    const t = setUp(0, true);
    const [a, b] = [t.deliver({ reqId: 1n }), t.deliver({ reqId: 2n })];
    for (let i = 0; i < 5; i++) t.chunk(1n, Buffer.alloc(32_768));
    expect(a.failed?.reason).toBe("buffer_full");
    expect(b.failed).toBeUndefined();
    expect(t.sent.at(-1)).toEqual({ $case: "abort", value: { reqId: 1n, execId: "" } });
    t.chunk(1n, "late");
    t.end(1n);
    expect(t.meter).toEqual({ bytes: 0, routes: 1 });
  });

  it("refuses more work for a worker that does not read", () => {
    const t = setUp();
    t.link.queued = 30_000;
    expect(() => t.deliver({})).toThrow(/is not reading/);
    expect(t.meter.routes).toBe(0);
  });

  it("refuses a command that a base worker's 4 MiB limit would turn into the end of its session", () => {
    const t = setUp(0);
    expect(() => t.deliver({ stdin: Buffer.alloc(2_000) })).toThrow(/SH_RELAY_BASE_MAX_MESSAGE_BYTES/);
    expect(() => setUp(1).deliver({ stdin: Buffer.alloc(2_000) })).not.toThrow();
  });
});
