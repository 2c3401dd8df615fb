// One HTTP request over a stream of ours, and the harness behind it.
import http from "node:http";
import { text } from "node:stream/consumers";
import type { Duplex } from "node:stream";
import type { ProofInput } from "./input";
import type { ClusterPort, HarnessPort, HttpAnswer } from "./ports";

const HEALTH_MS = 90_000;
/** The client's limit in the contract. */
const LEAF_MS = 120_000;

/** Sends one request and reads the whole answer; the stream is gone afterwards. Rejects when no answer came. */
export async function request(stream: Duplex, host: string, method: string, path: string, ms: number, body?: unknown): Promise<HttpAnswer> {
  const started = performance.now();
  const payload = body === undefined ? undefined : JSON.stringify(body);
  const headers: http.OutgoingHttpHeaders = { host, connection: "close", accept: "application/json" };
  if (payload !== undefined) Object.assign(headers, { "content-type": "application/json", "content-length": Buffer.byteLength(payload) });
  try {
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const call = http.request({ createConnection: () => stream as never, method, path, headers, signal: AbortSignal.timeout(ms) }, resolve);
      call.on("error", (e) => reject(e.name === "AbortError" || e.name === "TimeoutError" ? new Error(`no answer within ${ms / 1000} s`) : e));
      call.end(payload);
    });
    return { status: response.statusCode!, body: await text(response), elapsedMs: Math.round(performance.now() - started) };
  } finally {
    stream.destroy();
  }
}

/** The harness's arms, through the cluster's ingress, told apart by their Host header. */
export class Harness implements HarnessPort {
  constructor(private readonly cluster: ClusterPort, private readonly input: ProofInput) {}

  health(arm: string): Promise<HttpAnswer> {
    return this.send(arm, "GET", "/health", HEALTH_MS);
  }

  run(arm: string, body: unknown): Promise<HttpAnswer> {
    return this.send(arm, "POST", "/runs", LEAF_MS, body);
  }

  private async send(arm: string, method: string, path: string, ms: number, body?: unknown): Promise<HttpAnswer> {
    const host = `${arm}.${this.input.namespace}.${this.input.domain}`;
    try {
      return await request(await this.cluster.connect(this.input.ingress), host, method, path, ms, body);
    } catch (e) {
      throw new Error(`${method} http://${host}${path} through ${this.input.ingress.namespace}/${this.input.ingress.service}: ${(e as Error).message}`);
    }
  }
}
