import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { WorkerFrame, type Chunk } from "@dialout/proto";

/** Field numbers of proto/sandbox.proto. */
const CHUNK_IN_FRAME = 3;
const REQ_ID = 1, DATA = 2, STREAM = 3, OFFSET = 16;

/** The bytes of a frame. Payloads are copied once; the generated encoder does so three times, which is what a flood of output is made of. */
export function encodeFrame(frame: WorkerFrame): Buffer {
  return frame.msg?.$case === "chunk" ? encodeChunk(frame.msg.value) : Buffer.from(WorkerFrame.encode(frame).finish());
}

function encodeChunk({ reqId, data, stream, offset }: Chunk): Buffer {
  const fields = new BinaryWriter();
  if (reqId !== 0n) fields.tag(REQ_ID, WireType.Varint).uint64(reqId);
  if (stream !== 0) fields.tag(STREAM, WireType.Varint).int32(stream);
  if (offset !== 0n) fields.tag(OFFSET, WireType.Varint).uint64(offset);
  if (data.length > 0) fields.tag(DATA, WireType.LengthDelimited).uint32(data.length);
  const inner = fields.finish();
  const outer = new BinaryWriter().tag(CHUNK_IN_FRAME, WireType.LengthDelimited).uint32(inner.length + data.length).finish();
  return Buffer.concat([outer, inner, data]);
}
