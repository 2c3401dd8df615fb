import { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse, createServer, request } from "node:http";
import { type Table, type Target, route } from "./routes.ts";

// Belong to one connection, not to the message (RFC 9110 7.6.1); Node frames each side anew.
const HOP_BY_HOP = new Set(["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"]);

export function withoutHopByHop(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const named = new Set(String(headers.connection ?? "").toLowerCase().split(/\s*,\s*/));
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name) && !named.has(name)));
}

export function requestHeaders(incoming: IncomingMessage, target: Target): OutgoingHttpHeaders {
  const appended = Object.fromEntries(Object.entries(target.headers).map(([k, v]) => [k.toLowerCase(), v]));
  const from = incoming.socket.remoteAddress ?? "";
  const before = incoming.headers["x-forwarded-for"];
  return {
    ...withoutHopByHop(incoming.headers),
    "x-forwarded-for": before ? `${String(before)}, ${from}` : from,
    "x-forwarded-proto": incoming.headers["x-forwarded-proto"] ?? "http",
    ...appended,
    ...(target.host ? { host: target.host } : {}),
    // A body without a length stays chunked on the next hop.
    ...(incoming.headers["transfer-encoding"] ? { "transfer-encoding": "chunked" } : {}),
  };
}

export interface ProxyOptions {
  table: () => Table;
  /** Name under which a service is dialled. */
  address?: (target: Target) => { host: string; port: number };
  random?: () => number;
}

/** HTTP/1.1 reverse proxy by the routes of `table`. No timeouts of its own: a run behind it may take as long as it takes. */
export function createProxy({ table, address = inCluster, random = Math.random }: ProxyOptions) {
  const server = createServer((req, res) => {
    const header = (name: string) => { const v = req.headers[name]; return Array.isArray(v) ? v.join(", ") : v; };
    const target = route(table(), req.headers.host, req.url ?? "/", header, random());
    if (!target) return void refuse(res, 404, `no Knative route for host ${req.headers.host ?? "(none)"}\n`);
    forward(req, res, target, address(target));
  });
  server.requestTimeout = 0;
  server.on("upgrade", (_req, socket) => { socket.end("HTTP/1.1 501 Not Implemented\r\nconnection: close\r\n\r\n"); });
  return server;
}

function inCluster(target: Target) {
  // With the dot at the end the resolver does not try its search domains first.
  return { host: `${target.service}.${target.namespace}.svc.cluster.local.`, port: target.port };
}

function refuse(res: ServerResponse, status: number, text: string): void {
  res.writeHead(status, { "content-type": "text/plain" }).end(text);
}

function forward(req: IncomingMessage, res: ServerResponse, target: Target, to: { host: string; port: number }): void {
  // A connection per request: a kept one may be closed by a pod that scales down, just as it is used.
  const upstream = request({ ...to, agent: false, method: req.method, path: req.url, headers: requestHeaders(req, target) });
  upstream.on("response", (answer) => {
    res.writeHead(answer.statusCode ?? 502, answer.statusMessage, withoutHopByHop(answer.headers));
    // Headers at once: a stream's first byte may be long in coming.
    res.flushHeaders();
    answer.on("error", () => res.destroy());
    answer.pipe(res);
  });
  upstream.on("error", (e) => {
    // Half an answer must not look like a whole one.
    if (res.headersSent) res.destroy();
    else refuse(res, 502, `${target.service}.${target.namespace}: ${e.message}\n`);
  });
  res.on("close", () => upstream.destroy());
  req.pipe(upstream);
}
