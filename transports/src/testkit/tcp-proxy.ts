// For tests only: a TCP link that can be made to fail in the ways real ones do, each direction by itself.
import { setMaxListeners } from "node:events";
import net from "node:net";
import { delay } from "@dialout/common";

/** How bytes pass. They keep their order in every mode; a black hole holds them (and the peer's window) until the mode changes. */
export type Link =
  | { kind: "pass" }
  | { kind: "black-hole" }
  | { kind: "latency"; ms: number }
  | { kind: "bandwidth"; bytesPerSecond: number }
  | { kind: "slice"; bytes: number };

export type Direction = "up" | "down";

interface Pair {
  /** Towards whoever dialled us. */
  client: net.Socket;
  /** Towards the target. */
  server: net.Socket;
}

/** Every connection that a fault holds up waits on it. */
function newSignal(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

export class TcpProxy {
  private readonly server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => this.connect(client));
  private readonly pairs = new Set<Pair>();
  /** Sockets to the target whose other half is gone; see `forget`. */
  private readonly forgotten = new Set<net.Socket>();
  private link: Record<Direction, Link> = { up: { kind: "pass" }, down: { kind: "pass" } };
  private changed = newSignal();
  private refusing = false;
  port = 0;
  /** Connections taken so far. */
  accepted = 0;

  constructor(private readonly target: { port: number; host?: string }) {}

  get addr(): string {
    return `127.0.0.1:${this.port}`;
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve, reject) => this.server.once("error", reject).listen(0, "127.0.0.1", resolve));
    this.port = (this.server.address() as net.AddressInfo).port;
    return this;
  }

  async stop(): Promise<void> {
    this.cut();
    for (const server of this.forgotten) server.destroy();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  /** From now on, for what is in flight too. */
  set(link: Link, direction?: Direction): void {
    for (const d of direction ? [direction] : (["up", "down"] as const)) this.link[d] = link;
    this.changed.abort();
    this.changed = newSignal();
  }

  /** Ends every connection with FIN and takes no new ones until `heal`. */
  cut(): void {
    this.refusing = true;
    for (const pair of this.pairs) this.drop(pair, (s) => s.destroy());
  }

  /** Ends every connection with RST; new ones are welcome. */
  reset(): void {
    for (const pair of this.pairs) this.drop(pair, (s) => s.resetAndDestroy());
  }

  /** Closes one direction of every connection only. `down`: whoever dialled us sees FIN, and is still heard. */
  halfClose(direction: Direction): void {
    for (const pair of this.pairs) (direction === "down" ? pair.client : pair.server).end();
  }

  /** Ends every connection towards whoever dialled us and leaves the target's end open, as a NAT that lost its table does; new ones are welcome. */
  forget(): void {
    for (const pair of this.pairs) {
      this.forgotten.add(pair.server);
      this.drop(pair, (s) => s === pair.client && s.resetAndDestroy());
    }
  }

  heal(): void {
    this.refusing = false;
    this.set({ kind: "pass" });
  }

  private drop(pair: Pair, how: (socket: net.Socket) => unknown): void {
    // What closes later of a pair that is dropped already is not news.
    if (!this.pairs.delete(pair)) return;
    how(pair.client);
    how(pair.server);
  }

  private connect(client: net.Socket): void {
    client.on("error", () => undefined);
    if (this.refusing) return void client.resetAndDestroy();
    this.accepted++;
    const server = net.connect({ port: this.target.port, host: this.target.host ?? "127.0.0.1", allowHalfOpen: true, noDelay: true });
    client.setNoDelay(true);
    const pair = { client, server };
    this.pairs.add(pair);
    server.on("error", () => this.drop(pair, (s) => s.resetAndDestroy()));
    client.on("error", () => this.drop(pair, (s) => s.resetAndDestroy()));
    server.on("close", () => this.drop(pair, (s) => s.destroy()));
    client.on("close", () => this.drop(pair, (s) => s.destroy()));
    this.pump(client, server, "up");
    this.pump(server, client, "down");
  }

  private pump(from: net.Socket, to: net.Socket, direction: Direction): void {
    let busy = Promise.resolve();
    from.on("data", (data: Buffer) => {
      from.pause();
      busy = this.pass(data, to, direction).then(() => void from.resume());
    });
    from.on("end", () => void busy.then(() => to.writable && to.end()));
    from.resume();
  }

  private async pass(data: Buffer, to: net.Socket, direction: Direction): Promise<void> {
    let rest = data;
    while (rest.length && !to.destroyed) {
      const link = this.link[direction];
      const { signal } = this.changed;
      if (link.kind === "black-hole") {
        await new Promise<void>((resolve) => {
          signal.addEventListener("abort", () => resolve(), { once: true });
          to.once("close", resolve);
        });
        continue;
      }
      if (link.kind === "latency") await delay(link.ms, signal);
      const size = link.kind === "slice" ? link.bytes : link.kind === "bandwidth" ? Math.max(1, Math.ceil(link.bytesPerSecond / 50)) : rest.length;
      const piece = rest.subarray(0, size);
      rest = rest.subarray(size);
      if (!to.write(piece)) await new Promise<void>((resolve) => to.once("drain", resolve).once("close", resolve));
      // Without a pause the kernel would join the slices again.
      if (link.kind === "slice") await new Promise((resolve) => setImmediate(resolve));
      if (link.kind === "bandwidth") await delay((piece.length / link.bytesPerSecond) * 1000, signal);
    }
  }
}
