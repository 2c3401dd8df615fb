// A small client of the Docker Engine HTTP API.
import http from "node:http";
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { UserError, messageOf } from "../provider/errors";

export const DEFAULT_HOST = "unix:///var/run/docker.sock";

/** The daemon's own refusal. */
export class EngineError extends UserError {
  constructor(readonly status: number, readonly reason: string) {
    super(`Error response from daemon: ${reason}`);
  }
}

export interface Request {
  query?: Record<string, string | number | boolean | readonly string[] | undefined>;
  /** Sent as JSON, or as a tar archive when it is bytes or a stream. */
  body?: object | Buffer | Readable;
  signal?: AbortSignal;
}

export class Engine {
  private readonly where: { socketPath: string } | { host: string; port: number };

  /** @param host `unix:///path` or `tcp://host:port`, as in DOCKER_HOST */
  constructor(readonly host: string) {
    this.where = parseHost(host);
  }

  /** The answer as JSON; undefined when it has no body. Throws EngineError for any status from 400 up. */
  async json<T>(method: string, path: string, request: Request = {}): Promise<T> {
    const text = (await this.bytes(method, path, request)).toString();
    return (text ? JSON.parse(text) : undefined) as T;
  }

  async bytes(method: string, path: string, request: Request = {}): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for await (const chunk of this.chunks(method, path, request)) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  /** As json(), but null where the daemon knows no such thing. */
  async find<T>(path: string, request: Request = {}): Promise<T | null> {
    try {
      return await this.json<T>("GET", path, request);
    } catch (error) {
      if (error instanceof EngineError && error.status === 404) return null;
      throw error;
    }
  }

  /** Each line of an answer that is a stream of JSON objects. */
  async *lines<T>(method: string, path: string, request: Request = {}): AsyncGenerator<T> {
    let rest = "";
    const decoder = new StringDecoder();
    for await (const chunk of this.chunks(method, path, request)) {
      const lines = (rest + decoder.write(chunk)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.trim()) yield JSON.parse(line) as T;
    }
    if (rest.trim()) yield JSON.parse(rest) as T;
  }

  private async *chunks(method: string, path: string, request: Request): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of await this.stream(method, path, request)) yield chunk as Buffer;
    } catch (error) {
      throw this.unreachable(error as NodeJS.ErrnoException, request.signal);
    }
  }

  private async stream(method: string, path: string, { query, body, signal }: Request): Promise<http.IncomingMessage> {
    const isTar = Buffer.isBuffer(body) || isStream(body);
    const payload = body === undefined || isTar ? body : Buffer.from(JSON.stringify(body));
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const request = http.request(
        { ...this.where, method, path: `${path}${queryString(query)}`, signal, headers: payload === undefined ? {} : { "Content-Type": isTar ? "application/x-tar" : "application/json" } },
        resolve,
      );
      request.once("error", reject);
      if (isStream(payload)) {
        payload.once("error", (error) => request.destroy(error));
        payload.pipe(request);
      } else {
        request.end(payload);
      }
    });
    if ((response.statusCode ?? 500) < 400) return response;
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    throw new EngineError(response.statusCode ?? 500, reasonOf(Buffer.concat(chunks).toString()));
  }

  private unreachable(error: NodeJS.ErrnoException, signal?: AbortSignal): Error {
    if (signal?.aborted && signal.reason instanceof Error) return signal.reason;
    if (error instanceof UserError) return error;
    if (error.syscall !== "connect") return new UserError(`the connection to Docker at ${this.host} broke: ${messageOf(error)}`);
    return new UserError(`cannot reach Docker at ${this.host}: ${messageOf(error)}. Is the daemon running (docker version), and is DOCKER_HOST right?`);
  }
}

const isStream = (body: unknown): body is Readable => typeof body === "object" && body !== null && "pipe" in body;

export function parseHost(host: string): { socketPath: string } | { host: string; port: number } {
  const unix = /^unix:\/\/(\/.+)$/.exec(host);
  if (unix?.[1]) return { socketPath: unix[1] };
  const tcp = /^(?:tcp|http):\/\/(\[[^\]]+\]|[^:/]+)(?::(\d+))?\/?$/.exec(host);
  if (tcp?.[1]) return { host: tcp[1].replace(/^\[|\]$/g, ""), port: Number(tcp[2] ?? 2375) };
  throw new UserError(`docker stand-in: Docker host '${host}' is not supported by the lab stand-in (unix:///path or tcp://host:port is); use the genuine plugin`);
}

function queryString(query: Request["query"] = {}): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) parameters.append(key, String(one));
  }
  const text = parameters.toString();
  return text ? `?${text}` : "";
}

function reasonOf(text: string): string {
  try {
    return (JSON.parse(text) as { message?: string }).message ?? text;
  } catch {
    return text.trim();
  }
}
