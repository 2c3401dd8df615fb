import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that cannot be served; `status` is the HTTP status the caller gets. */
export class HttpError extends Error {
  override readonly name = "HttpError";

  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** The whole body, at most `limit` bytes. Rejects with HttpError 413 (too large) or 400 (the peer went away halfway). */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const tooLarge = () => new HttpError(413, `the body is larger than ${limit} bytes`);
  if (Number(request.headers["content-length"] ?? 0) > limit) throw tooLarge();
  const parts: Buffer[] = [];
  let size = 0;
  try {
    // Left open on a throw: the refusal has to travel back over the same socket.
    for await (const part of request.iterator({ destroyOnReturn: false })) {
      size += (part as Buffer).length;
      if (size > limit) throw tooLarge();
      parts.push(part as Buffer);
    }
  } catch (e) {
    if (e instanceof HttpError) throw e;
    throw new HttpError(400, "the body ended early");
  }
  return Buffer.concat(parts);
}

/** Parses a body as JSON; HttpError 400 says where it breaks without echoing it. */
export function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch (e) {
    throw new HttpError(400, e instanceof SyntaxError ? "the body is not JSON" : "the body is not UTF-8");
  }
}

/** Answers once; a peer that is gone or was answered already is not an error. */
export function sendJson(response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}): void {
  send(response, status, JSON.stringify(value), { "content-type": "application/json", ...headers });
}

export function send(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  if (response.headersSent || response.destroyed) return;
  // An unread rest of a body would otherwise be taken for the next request on this connection.
  const rest: Record<string, string> = response.req.complete ? {} : { connection: "close" };
  response.writeHead(status, { "content-length": String(Buffer.byteLength(text)), ...rest, ...headers });
  response.end(text);
}

/** Listens and resolves with the server and the port it got. A refused bind rejects with what to change. */
export async function listen(handler: RequestListener, host: string, port: number): Promise<{ server: Server; port: number }> {
  const server = createServer({ requestTimeout: 60_000, headersTimeout: 20_000 }, handler);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (e: NodeJS.ErrnoException) => {
      reject(new Error(`cannot listen on ${host}:${port} (${e.code ?? e.message}). Choose a free port with PORT`));
    });
    server.listen(port, host, resolve);
  });
  return { server, port: (server.address() as AddressInfo).port };
}

/** Stops accepting, lets answers in flight finish, and cuts what is left when the signal aborts. */
export async function closeServer(server: Server, signal: AbortSignal): Promise<void> {
  const cut = () => server.closeAllConnections();
  signal.addEventListener("abort", cut, { once: true });
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
    if (signal.aborted) cut();
  });
  signal.removeEventListener("abort", cut);
}
