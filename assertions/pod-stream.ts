// A byte stream to a port of a pod, through the API server's port-forward. Nothing listens on this machine.
import { Duplex } from "node:stream";
import type WebSocket from "ws";

/** The part of a WebSocket that the stream needs. */
export type Socket = Pick<WebSocket, "send" | "close" | "terminate" | "pause" | "resume" | "on">;
export type Opener = (onFrame: (channel: number, data: Buffer) => void) => Promise<Socket>;

const DATA = 0;
const ERROR = 1;
/** Each channel starts with the port number. */
const PREFIX = 2;

/**
 * Ends when the far side closes, errors with the kubelet's text when it could not connect, holds the far side back when it is
 * not read. There is no half-close on this channel: ending the writing side closes all of it, hence `allowHalfOpen: false`.
 */
export class PodStream extends Duplex {
  private socket: Socket | undefined;
  private readonly skipped = [0, 0];
  // What HTTP and Redis clients set on a TCP socket has no meaning here.
  readonly connecting = false;

  constructor() {
    super({ allowHalfOpen: false });
  }

  /** Opens the stream; rejects when the API server refuses. */
  static async open(opener: Opener): Promise<PodStream> {
    const stream = new PodStream();
    const socket = await opener((channel, data) => stream.frame(channel, data));
    stream.socket = socket;
    socket.on("error", (e: Error) => stream.destroy(e));
    // Not destroy(): what has arrived is still to be read.
    socket.on("close", () => stream.push(null));
    return stream;
  }

  setNoDelay(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  setTimeout(_ms: number, _done?: () => void): this {
    return this;
  }

  private frame(channel: number, data: Buffer): void {
    if (channel !== DATA && channel !== ERROR) return;
    const drop = Math.min(data.length, PREFIX - this.skipped[channel]!);
    this.skipped[channel]! += drop;
    const rest = data.subarray(drop);
    if (!rest.length || this.destroyed) return;
    if (channel === ERROR) this.destroy(new Error(rest.toString("utf8").trim()));
    else if (!this.push(rest)) this.socket?.pause();
  }

  override _read(): void {
    this.socket?.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (e?: Error | null) => void): void {
    if (!this.socket) return done(new Error("the port-forward is not open"));
    this.socket.send(Buffer.concat([Buffer.from([DATA]), chunk]), (e) => done(e));
  }

  override _final(done: () => void): void {
    this.socket?.close();
    done();
  }

  override _destroy(error: Error | null, done: (e: Error | null) => void): void {
    this.socket?.terminate();
    done(error);
  }
}
