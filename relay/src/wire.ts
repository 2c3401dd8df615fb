// A WorkerFrame carries a Chunk, End, ExecError or Accepted in one field, and an ExecEvent carries the same message in
// another. Forwarding is therefore a change of the first byte: payloads are neither decoded nor copied, and fields that this
// version does not know pass through.
import { WorkerFrame } from "@dialout/proto";

export class WireError extends Error {
  override readonly name = "WireError";
}

export type FrameKind = "hello" | "heartbeat" | "chunk" | "end" | "error" | "accepted" | "unknown";

/** Field numbers of the frame kinds: in WorkerFrame, and of the same message in ExecEvent. */
const inFrame: Record<number, FrameKind> = { 1: "hello", 2: "heartbeat", 3: "chunk", 4: "end", 5: "error", 16: "accepted" };
const eventTag: Partial<Record<FrameKind, number>> = { chunk: 0x0a, end: 0x12, error: 0x1a };

/** One frame: `body` is the message inside, `bytes` all of it. */
export interface Frame {
  kind: FrameKind;
  bytes: Buffer;
  body: Buffer;
}

/** Where the parts of a chunk are. `reqId` and `offset` are -1 when above 2^53-1, which no id or offset of ours is. */
export interface ChunkView {
  reqId: number;
  data: Buffer;
  stream: number;
  offset: number;
}

let position = 0;

/** Reads a varint at `position`; -1 when the value is above 2^53-1. */
function varint(b: Buffer): number {
  let value = 0;
  let factor = 1;
  for (let i = 0; i < 10; i++) {
    const byte = b[position++];
    if (byte === undefined) throw new WireError("a number is cut off");
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return value > Number.MAX_SAFE_INTEGER ? -1 : value;
    factor *= 128;
  }
  throw new WireError("a number is longer than 10 bytes");
}

function skip(b: Buffer, wireType: number): void {
  if (wireType === 0) varint(b);
  else if (wireType === 1) position += 8;
  else if (wireType === 5) position += 4;
  else if (wireType === 2) {
    const length = varint(b);
    if (length < 0) throw new WireError("a field is too long");
    position += length;
  } else throw new WireError(`wire type ${wireType} is not known`);
  if (position > b.length) throw new WireError("a field is cut off");
}

/** Splits a WorkerFrame into kind and body. Throws a WireError when it cannot be decoded. */
export function scanFrame(bytes: Buffer): Frame {
  if (bytes.length === 0) return { kind: "unknown", bytes, body: bytes };
  position = 0;
  const tag = varint(bytes);
  if ((tag & 7) === 2) {
    const length = varint(bytes);
    if (length === bytes.length - position) return { kind: inFrame[tag >>> 3] ?? "unknown", bytes, body: bytes.subarray(position) };
  }
  return scanUnusual(bytes);
}

/** A legal but uncommon encoding (several fields, padding): decode it and encode it again the common way. */
function scanUnusual(bytes: Buffer): Frame {
  let again: Buffer;
  try {
    again = Buffer.from(WorkerFrame.encode(WorkerFrame.decode(bytes)).finish());
  } catch (e) {
    throw new WireError(e instanceof Error ? e.message : "not a WorkerFrame");
  }
  if (again.length === 0) return { kind: "unknown", bytes: again, body: again };
  return scanFrame(again);
}

/** The `req_id` of an End, ExecError or Accepted; also proves that the body is well-formed. */
export function scanReqId(body: Buffer): number {
  position = 0;
  let reqId = 0;
  while (position < body.length) {
    const tag = varint(body);
    if (tag === 8) reqId = varint(body);
    else skip(body, tag & 7);
  }
  return reqId;
}

export function scanChunk(body: Buffer): ChunkView {
  position = 0;
  const view: ChunkView = { reqId: 0, data: body.subarray(0, 0), stream: 0, offset: 0 };
  while (position < body.length) {
    const tag = varint(body);
    if (tag === 8) view.reqId = varint(body);
    else if (tag === 18) {
      const length = varint(body);
      if (length < 0 || position + length > body.length) throw new WireError("chunk data is cut off");
      view.data = body.subarray(position, position + length);
      position += length;
    } else if (tag === 24) view.stream = varint(body);
    else if (tag === 128) view.offset = varint(body);
    else skip(body, tag & 7);
  }
  return view;
}

/** Turns the frame into the ExecEvent with the same content. The frame must not be used afterwards. */
export function toEvent(frame: Frame): Buffer {
  const tag = eventTag[frame.kind];
  // `accepted` has the same number on both sides, so its frame is its event.
  if (tag !== undefined) frame.bytes[0] = tag;
  return frame.bytes;
}

/** Room that `encodeChunkEvent` needs in front of the data. */
export const HEADROOM = 64;

function putVarint(b: Buffer, at: number, value: number): number {
  let v = value;
  while (v >= 128) {
    b[at++] = (v % 128) | 0x80;
    v = Math.floor(v / 128);
  }
  b[at++] = v;
  return at;
}

/** Writes the head of an ExecEvent with a chunk right before its data, which starts at HEADROOM; returns the event. */
export function encodeChunkEvent(b: Buffer, length: number, chunk: Omit<ChunkView, "data">): Buffer {
  const head = Buffer.allocUnsafe(HEADROOM);
  let n = 0;
  if (chunk.reqId) n = putVarint(head, putVarint(head, n, 8), chunk.reqId);
  if (chunk.stream) n = putVarint(head, putVarint(head, n, 24), chunk.stream);
  if (chunk.offset) n = putVarint(head, putVarint(head, n, 128), chunk.offset);
  if (length) n = putVarint(head, putVarint(head, n, 18), length);
  const outer = Buffer.allocUnsafe(11);
  const m = putVarint(outer, putVarint(outer, 0, 0x0a), n + length);
  const start = HEADROOM - n - m;
  outer.copy(b, start, 0, m);
  head.copy(b, HEADROOM - n, 0, n);
  return b.subarray(start, HEADROOM + length);
}
