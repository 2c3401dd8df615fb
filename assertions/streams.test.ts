// Bytes through a port-forward: the pod stream itself, HTTP over it, and a socket file in front of it.
import { EventEmitter, once } from "node:events";
import { existsSync, statSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import path from "node:path";
import { Duplex } from "node:stream";
import { setImmediate as tick } from "node:timers/promises";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { bridge } from "./bridge";
import { request } from "./http";
import { PodStream } from "./pod-stream";

/** The API server's side of a port-forward, as a WebSocket shows it. */
class FakeSocket extends EventEmitter {
  sent: Buffer[] = [];
  closed = false;
  paused = false;
  send(data: Buffer, done: () => void): void {
    this.sent.push(data);
    done();
  }
  close(): void {
    this.closed = true;
  }
  terminate(): void {
    this.closed = true;
  }
  pause(): void {
    this.paused = true;
  }
  resume(): void {
    this.paused = false;
  }
}

async function open() {
  const socket = new FakeSocket();
  let frame!: (channel: number, data: Buffer) => void;
  const stream = await PodStream.open(async (onFrame) => {
    frame = onFrame;
    return socket as never;
  });
  return { socket, stream, frame };
}

describe("PodStream", () => {
  it("drops the port number that each channel starts with, also in pieces, and delivers the rest", async () => {
    const { socket, stream, frame } = await open();
    frame(0, Buffer.from([0x50]));
    frame(0, Buffer.concat([Buffer.from([0x00]), Buffer.from("hel")]));
    frame(0, Buffer.from("lo"));
    socket.emit("close");
    expect(await text(stream)).toBe("hello");
  });

  it("sends on channel 0, binary-safe", async () => {
    const { socket, stream } = await open();
    stream.write(Buffer.from([0, 255, 10]));
    await tick();
    expect(socket.sent[0]).toEqual(Buffer.from([0, 0, 255, 10]));
  });

  it("fails with the kubelet's words when the port does not answer", async () => {
    const { socket, stream, frame } = await open();
    const failed = once(stream, "error");
    frame(1, Buffer.from([0x50, 0x00]));
    frame(1, Buffer.from("dial tcp4 127.0.0.1:80: connect: connection refused\n"));
    expect((await failed)[0].message).toBe("dial tcp4 127.0.0.1:80: connect: connection refused");
    expect(socket.closed).toBe(true);
  });

  it("holds the far side back while nobody reads", async () => {
    const { socket, stream, frame } = await open();
    for (let i = 0; i < 40; i++) frame(0, Buffer.alloc(8192));
    expect(socket.paused).toBe(true);
    stream.resume();
    await tick();
    expect(socket.paused).toBe(false);
    stream.destroy();
  });

  it("rejects when the API server refuses, and closes the socket when it is let go", async () => {
    await expect(PodStream.open(() => Promise.reject(new Error("403")))).rejects.toThrow("403");
    const { socket, stream } = await open();
    stream.destroy();
    await once(stream, "close");
    expect(socket.closed).toBe(true);
  });
});

describe("request", () => {
  const closers: (() => void)[] = [];
  afterEach(() => closers.splice(0).forEach((c) => c()));

  async function serve(handler: http.RequestListener): Promise<net.Socket> {
    const server = http.createServer(handler).listen(0, "127.0.0.1");
    await once(server, "listening");
    closers.push(() => server.closeAllConnections(), () => server.close());
    return net.connect((server.address() as net.AddressInfo).port, "127.0.0.1");
  }
  /** Hides that it is a TCP socket: a pod stream is none either. */
  const plain = (s: net.Socket) => Duplex.from({ readable: s, writable: s });

  it("sends the arm's name as Host and reads the whole answer, over a stream that is no socket", async () => {
    const seen: unknown[] = [];
    const socket = await serve((q, r) => void text(q).then((body) => {
      seen.push(q.method, q.url, q.headers.host, body);
      r.writeHead(202, { "content-type": "application/json" });
      r.write('{"a":');
      r.end("1}");
    }));
    const answer = await request(plain(socket), "arm.default.example.com", "POST", "/runs", 5000, { x: "é" });
    expect(answer).toMatchObject({ status: 202, body: '{"a":1}' });
    expect(seen).toEqual(["POST", "/runs", "arm.default.example.com", '{"x":"é"}']);
  });

  it("gives up after its time", async () => {
    await expect(request(await serve(() => {}), "h", "GET", "/", 50)).rejects.toThrow("no answer within 0.05 s");
  });

  it("rejects when the far side hangs up", async () => {
    await expect(request(await serve((q) => q.socket.destroy()), "h", "GET", "/", 5000)).rejects.toThrow();
  });
});

describe("bridge", () => {
  it("is a socket file only this user can reach, and gone after close", async () => {
    const b = await bridge(async () => new Duplex({ read() {}, write: (_c, _e, done) => done() }));
    const file = b.address.slice("unix:".length);
    expect(statSync(path.dirname(file)).mode & 0o777).toBe(0o700);
    const near = net.connect(file);
    await once(near, "connect");
    const gone = once(near, "close");
    await b.close();
    await gone;
    expect(existsSync(path.dirname(file))).toBe(false);
  });

  it("opens a new far side for each connection and passes bytes both ways; a far side that fails ends only its own", async () => {
    let n = 0;
    const b = await bridge(async () => {
      if (++n === 2) throw new Error("no ready pod");
      return new Duplex({ read() {}, write(chunk: Buffer, _e, done) { this.push(Buffer.from(`${n}:${chunk}`)); done(); } });
    });
    const say = () => new Promise<string>((resolve) => {
      const s = net.connect(b.address.slice("unix:".length));
      s.on("error", () => {}).once("close", () => resolve("closed"));
      s.once("data", (d: Buffer) => {
        resolve(d.toString());
        s.destroy();
      });
      s.write("x");
    });
    expect([await say(), await say(), await say()]).toEqual(["1:x", "closed", "3:x"]);
    await b.close();
  });
});
