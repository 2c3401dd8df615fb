import { ExecEvent, WorkerFrame } from "@dialout/proto";
import { describe, expect, it } from "vitest";
import { ExecSink, type SinkCall } from "./sink";
import { refuse, type Refusal } from "./status";
import { scanChunk, scanFrame, scanReqId, toEvent } from "./wire";

function setUp(limit = 1_000_000, offsets = true) {
  const written: { event: NonNullable<ExecEvent["event"]>; taken: () => void }[] = [];
  const log: string[] = [];
  const call: SinkCall = {
    write: (event, taken) => written.push({ event: ExecEvent.decode(event).event as NonNullable<ExecEvent["event"]>, taken }),
    end: () => log.push("end"),
    fail: (r: Refusal) => log.push(`fail ${r.reason}`),
  };
  const meter = { bytes: 0, routes: 0 };
  let taken = 0;
  const sink = new ExecSink(call, limit, offsets, meter, { taken: (n) => (taken += n), finished: () => log.push(`finished ${sink.outcome}`) });
  const offsetOf: Record<number, number> = {};
  const chunk = (text: string | Buffer, stream = 1, offset?: number) => {
    const data = Buffer.from(text);
    const at = offset ?? offsetOf[stream] ?? 0;
    offsetOf[stream] = at + data.length;
    const frame = scanFrame(Buffer.from(WorkerFrame.encode({ msg: { $case: "chunk", value: { reqId: 7n, data, stream, offset: offsets ? BigInt(at) : 0n } } }).finish()));
    return sink.chunk(frame, scanChunk(frame.body));
  };
  const finish = () => {
    const frame = scanFrame(Buffer.from(WorkerFrame.encode({ msg: { $case: "error", value: { reqId: 7n, message: "m", code: "", kill: undefined, replayed: false } } }).finish()));
    scanReqId(frame.body);
    sink.finish(toEvent(frame), "error");
  };
  /** Lets the caller take everything that is written, in turn. */
  let drained = 0;
  const drain = () => {
    while (drained < written.length) written[drained++]?.taken();
  };
  const output = (stream: number) => Buffer.concat(written.flatMap(({ event }) => (event.$case === "chunk" && event.value.stream === stream ? [event.value.data] : [])));
  return { written, log, sink, meter, chunk, finish, drain, output, takenBytes: () => taken };
}

describe("ExecSink", () => {
  it("writes the first chunk at once and the next only when that one was taken", () => {
    const s = setUp();
    s.chunk("a");
    s.chunk("b", 2);
    expect(s.written).toHaveLength(1);
    s.written[0]?.taken();
    expect(s.written).toHaveLength(2);
  });

  it("merges small neighbours of one stream that wait, and only those", () => {
    const s = setUp();
    for (const text of ["a", "b", "c", "d"]) s.chunk(text);
    s.chunk("E", 2);
    s.chunk("f");
    s.chunk("gap", 1, 100);
    s.finish();
    s.drain();
    expect(s.written.map(({ event }) => (event.$case === "chunk" ? `${event.value.stream}@${event.value.offset}:${event.value.data}` : event.$case))).toEqual(["1@0:a", "1@1:bcd", "2@0:E", "1@4:f", "1@100:gap", "error"]);
    expect(s.log).toEqual(["end", "finished error"]);
    expect(s.meter.bytes).toBe(0);
    expect(s.takenBytes()).toBe(9);
  });

  it("merges a base worker's chunks, which have no offsets", () => {
    const s = setUp(1_000_000, false);
    for (const text of ["a", "b", "c"]) s.chunk(text);
    s.drain();
    expect(s.output(1).toString()).toBe("abc");
    expect(s.written).toHaveLength(2);
  });

  it("keeps bytes and order over many sizes, and no message above 32 KiB of payload", () => {
    const s = setUp();
    const all: Buffer[] = [];
    for (let i = 0; i < 400; i++) {
      const data = Buffer.alloc((i * 7919) % 40_000 % (i % 3 ? 90 : 33_000), i);
      all.push(data);
      s.chunk(data);
      if (i % 5 === 0) s.drain();
    }
    s.drain();
    expect(s.output(1).equals(Buffer.concat(all))).toBe(true);
    expect(s.meter.bytes).toBe(0);
  });

  it("cuts a chunk that a caller with default limits could not receive", () => {
    const s = setUp(20_000_000);
    const data = Buffer.alloc(5_000_000, 1);
    data[4_999_999] = 9;
    s.chunk(data);
    s.drain();
    expect(s.output(1).equals(data)).toBe(true);
    expect(Math.max(...s.written.map(({ event }) => (event.$case === "chunk" ? event.value.data.length : 0)))).toBe(32_768);
    expect(s.written.at(-1)?.event).toMatchObject({ value: { offset: BigInt(Math.floor(4_999_999 / 32_768) * 32_768) } });
  });

  it("tells when more waits than it may hold, counting also what each event costs", () => {
    const bytes = setUp(100_000);
    expect(bytes.chunk(Buffer.alloc(30_000))).toBe(true);
    expect(bytes.chunk(Buffer.alloc(30_000))).toBe(true);
    expect(bytes.chunk(Buffer.alloc(30_000))).toBe(true);
    expect(bytes.chunk(Buffer.alloc(30_000))).toBe(false);
    const events = setUp(100_000);
    let taken = 0;
    while (events.chunk("x", (taken % 2) + 1)) taken++;
    expect(taken).toBeLessThan(400);
  });

  it("drops what waits when it fails, ends once, and ignores late callbacks", () => {
    const s = setUp();
    s.chunk("a");
    s.chunk("b", 2);
    s.sink.fail(refuse.outran(1));
    s.sink.fail(refuse.takenOver());
    s.sink.drop("cancelled");
    s.finish();
    s.written[0]?.taken();
    expect(s.written).toHaveLength(1);
    expect(s.log).toEqual(["finished refused", "fail buffer_full"]);
    expect(s.meter.bytes).toBe(0);
    expect(s.takenBytes()).toBe(0);
  });
});
