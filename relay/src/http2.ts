// The two things grpc-js has no public way for: the receive window of a connection, and closing a stream whose peer does
// not read. Both look through private fields; when those move, the relay works on with the defaults.
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { constants, type ServerHttp2Stream } from "node:http2";

export function http2StreamOf(call: object): ServerHttp2Stream | undefined {
  let inner = (call as { call?: unknown }).call as { nextCall?: unknown; stream?: unknown } | undefined;
  while (inner?.nextCall) inner = inner.nextCall as typeof inner;
  const stream = inner?.stream as ServerHttp2Stream | undefined;
  return stream && typeof stream.close === "function" ? stream : undefined;
}

/**
 * Lets a worker have `bytes` under way. The default of 64 KiB per connection would hold a worker at 50 ms distance to about
 * 1 MiB/s, whatever its line can do. Credit bounds what this can make the relay hold.
 */
export function widenReceiveWindow(call: ServerDuplexStream<unknown, unknown>, bytes: number): void {
  const session = http2StreamOf(call)?.session;
  if (!session || session.destroyed) return;
  session.settings({ initialWindowSize: bytes });
  session.setLocalWindowSize(2 * bytes);
}

/** Resets the stream if it is still there: its end waits behind data that the peer does not take. */
export function resetStream(call: object): void {
  const stream = http2StreamOf(call);
  if (stream && !stream.destroyed && !stream.closed) stream.close(constants.NGHTTP2_CANCEL);
}
