import fc from "fast-check";
import { expect, it } from "vitest";
import { Stream, WorkerFrame } from "@dialout/proto";
import { encodeFrame } from "./encode";

it("encodes what the generated decoder reads", () => {
  fc.assert(fc.property(fc.bigInt(0n, 2n ** 64n - 1n), fc.uint8Array({ maxLength: 300 }), fc.constantFrom(Stream.STREAM_STDOUT, Stream.STREAM_STDERR), fc.bigInt(0n, 2n ** 63n), (reqId, bytes, stream, offset) => {
    const frame: WorkerFrame = { msg: { $case: "chunk", value: { reqId, data: Buffer.from(bytes), stream, offset } } };
    expect(WorkerFrame.decode(encodeFrame(frame))).toEqual(frame);
  }));
  const accepted: WorkerFrame = { msg: { $case: "accepted", value: { reqId: 7n, state: "running" } } };
  expect(WorkerFrame.decode(encodeFrame(accepted))).toEqual(accepted);
});
