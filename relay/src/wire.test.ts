import { Chunk, ExecEvent, WorkerFrame } from "@dialout/proto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HEADROOM, WireError, encodeChunkEvent, scanChunk, scanFrame, scanReqId, toEvent } from "./wire";

const encode = (frame: WorkerFrame) => Buffer.from(WorkerFrame.encode(frame).finish());
const safe = fc.maxSafeNat();
const chunks = fc.record({ reqId: safe.map(BigInt), data: fc.uint8Array({ maxLength: 300 }).map((b) => Buffer.from(b)), stream: fc.constantFrom(0, 1, 2), offset: safe.map(BigInt) });

describe("forwarding a frame", () => {
  it("keeps every chunk as it was", () => {
    fc.assert(fc.property(chunks, (value) => {
      const frame = scanFrame(encode({ msg: { $case: "chunk", value } }));
      const view = scanChunk(frame.body);
      expect({ reqId: BigInt(view.reqId), data: Buffer.from(view.data), stream: view.stream, offset: BigInt(view.offset) }).toEqual(value);
      expect(ExecEvent.decode(toEvent(frame)).event).toEqual({ $case: "chunk", value });
    }));
  });

  it.each([
    ["end", { $case: "end", value: { reqId: 9n, exitCode: -1, stdoutTruncated: true, stderrTruncated: false, stdoutBytes: 1n, stderrBytes: 0n, signal: "SIGKILL", kill: { found: 1, killed: 1, remaining: 0, verified: true, detail: "" }, replayed: true, durationMs: 5n } }],
    ["error", { $case: "error", value: { reqId: 9n, message: "timeout:1", code: "timeout", kill: undefined, replayed: false } }],
    ["accepted", { $case: "accepted", value: { reqId: 9n, state: "running" } }],
  ])("keeps %s as it was", (kind, msg) => {
    const frame = scanFrame(encode({ msg } as WorkerFrame));
    expect(frame.kind).toBe(kind);
    expect(scanReqId(frame.body)).toBe(9);
    expect(ExecEvent.decode(toEvent(frame)).event).toEqual(msg);
  });

  it("keeps fields of a newer version", () => {
    const body = Buffer.concat([Buffer.from(Chunk.encode(Chunk.fromPartial({ reqId: 1n, data: Buffer.from("x") })).finish()), Buffer.from([0xf8, 0x06, 0x07])]);
    const event = toEvent(scanFrame(Buffer.concat([Buffer.from([0x1a, body.length]), body])));
    expect(event.subarray(2)).toEqual(body);
  });

  it("reads a frame whose fields came in an unusual way: the last one counts", () => {
    const twice = Buffer.concat([encode({ msg: { $case: "heartbeat", value: {} } }), encode({ msg: { $case: "accepted", value: { reqId: 3n, state: "" } } })]);
    expect(scanFrame(twice).kind).toBe("accepted");
  });

  it.each([[Buffer.alloc(0)], [Buffer.from([0xfa, 0x0f, 0x00])]])("takes %j for something unknown", (bytes) => {
    expect(scanFrame(bytes).kind).toBe("unknown");
  });

  it("gives an id above 2^53-1 as one that cannot exist", () => {
    expect(scanChunk(Buffer.from(Chunk.encode(Chunk.fromPartial({ reqId: 2n ** 53n })).finish())).reqId).toBe(-1);
  });

  it("answers any bytes with a result or a WireError", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      try {
        const frame = scanFrame(Buffer.from(bytes));
        if (frame.kind === "chunk") scanChunk(frame.body);
        else scanReqId(frame.body);
      } catch (e) {
        expect(e).toBeInstanceOf(WireError);
      }
    }), { numRuns: 2000 });
  });
});

it("encodes a merged chunk like the generated code would", () => {
  fc.assert(fc.property(chunks, (value) => {
    const room = Buffer.alloc(HEADROOM + value.data.length + 10);
    value.data.copy(room, HEADROOM);
    const event = encodeChunkEvent(room, value.data.length, { reqId: Number(value.reqId), stream: value.stream, offset: Number(value.offset) });
    expect(ExecEvent.decode(event).event).toEqual({ $case: "chunk", value });
  }));
});
