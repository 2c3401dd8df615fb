// The two WebSocket subresources of a pod: exec and portforward.
import type { KubeConfig } from "@kubernetes/client-node";
import WebSocket from "ws";
import { within } from "./bounds";
import { PodStream } from "./pod-stream";
import type { ExecOutput } from "./ports";

const CONNECT_MS = 15_000;
/** Frames are: channel number, then data. Both subresources speak it. */
const PROTOCOL = "v4.channel.k8s.io";
const STATUS = 3;
/** More than any output the proof asks for; what goes beyond is a mistake. */
const MAX_OUTPUT = 4 * 1024 * 1024;

export class KubeSockets {
  constructor(private readonly config: KubeConfig) {}

  /** Resolves for every exit status; rejects when the command could not be run or its status is not known. */
  async exec(namespace: string, pod: string, command: readonly string[], container: string | undefined, ms: number): Promise<ExecOutput> {
    const query = new URLSearchParams({ stdout: "true", stderr: "true" });
    for (const c of command) query.append("command", c);
    if (container) query.set("container", container);
    const parts = new Map<number, Buffer[]>([[1, []], [2, []], [STATUS, []]]);
    let size = 0;
    const socket = await this.open(`/api/v1/namespaces/${namespace}/pods/${pod}/exec?${query}`, (channel, data) => {
      size += data.length;
      if (size <= MAX_OUTPUT) parts.get(channel)?.push(data);
      else socket.terminate();
    });
    try {
      await within(ms, `exec in ${pod}`, new Promise<void>((resolve, reject) => {
        socket.on("close", () => resolve());
        socket.on("error", reject);
      }));
    } finally {
      socket.terminate();
    }
    if (size > MAX_OUTPUT) throw new Error(`exec in ${pod}: more than ${MAX_OUTPUT} bytes of output`);
    const text = (channel: number) => Buffer.concat(parts.get(channel)!).toString("utf8");
    return { stdout: text(1), stderr: text(2), exitCode: exitCode(text(STATUS), pod) };
  }

  forward(namespace: string, pod: string, port: number): Promise<PodStream> {
    return PodStream.open((onFrame) => this.open(`/api/v1/namespaces/${namespace}/pods/${pod}/portforward?ports=${port}`, onFrame));
  }

  /** Frames may arrive before the returned promise has resolved, so the listener comes first. */
  private async open(path: string, onFrame: (channel: number, data: Buffer) => void): Promise<WebSocket> {
    const options: Record<string, unknown> = {};
    await this.config.applyToHTTPSOptions(options);
    const what = path.split("?")[0]!;
    const socket = new WebSocket(this.config.getCurrentCluster()!.server.replace(/^http/, "ws") + path, [PROTOCOL], { ...options, handshakeTimeout: CONNECT_MS });
    socket.on("message", (data: Buffer, binary) => {
      if (binary && data.length > 0) onFrame(data.readUInt8(0), data.subarray(1));
    });
    try {
      await within(CONNECT_MS + 1000, what, new Promise<void>((resolve, reject) => {
        socket.once("open", resolve);
        socket.once("error", reject);
      }));
    } catch (e) {
      // Without a listener a late error would end the process.
      socket.on("error", () => {});
      socket.terminate();
      throw new Error(`${what}: ${(e as Error).message || "refused"}`);
    }
    return socket;
  }
}

/** The exit code out of the Status object that ends an exec. */
export function exitCode(status: string, pod: string): number {
  let parsed: { status?: string; message?: string; details?: { causes?: { reason?: string; message?: string }[] } };
  try {
    parsed = JSON.parse(status) as typeof parsed;
  } catch {
    throw new Error(`exec in ${pod}: the connection ended without a status`);
  }
  if (parsed.status === "Success") return 0;
  const code = parsed.details?.causes?.find((c) => c.reason === "ExitCode")?.message;
  if (code === undefined || !/^\d+$/.test(code)) throw new Error(`exec in ${pod}: ${parsed.message ?? status}`);
  return Number(code);
}
