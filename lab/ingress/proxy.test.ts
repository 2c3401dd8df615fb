import { once } from "node:events";
import { type AddressInfo } from "node:net";
import { type IncomingMessage, type RequestListener, type Server, createServer, request } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { createProxy, withoutHopByHop } from "./proxy.ts";
import { buildTable } from "./routes.ts";

const servers: Server[] = [];
afterEach(async () => {
  for (const s of servers.splice(0)) { s.closeAllConnections(); s.close(); await once(s, "close"); }
});
async function listen(server: Server): Promise<number> {
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
/** A proxy whose host `svc` leads to a server that answers with `listener`. */
async function behind(listener: RequestListener): Promise<number> {
  const port = await listen(createServer(listener));
  const table = buildTable([{ metadata: { name: "svc", namespace: "ns", generation: 1 }, spec: { rules: [{ hosts: ["svc"], http: { paths: [{ splits: [{ serviceName: "rev", serviceNamespace: "ns", servicePort: 80, appendHeaders: { "Knative-Serving-Revision": "rev" } }] }] } }] } }]);
  return listen(createProxy({ table: () => table, address: () => ({ host: "127.0.0.1", port }) }));
}
const ask = (port: number, options: { host?: string; method?: string; path?: string; headers?: Record<string, string> } = {}) =>
  request({ host: "127.0.0.1", port, agent: false, method: options.method, path: options.path, headers: { host: options.host ?? "svc", ...options.headers } });
async function answer(req: ReturnType<typeof request>): Promise<IncomingMessage> {
  const [res] = (await once(req, "response")) as [IncomingMessage];
  return res;
}
async function body(res: IncomingMessage): Promise<string> {
  let all = "";
  for await (const part of res) all += part;
  return all;
}

describe("the proxy", () => {
  test("passes method, path, body, status and headers, and adds the split's", async () => {
    let seen: IncomingMessage | undefined;
    const port = await behind((req, res) => { seen = req; req.pipe(res.writeHead(201, { "x-answer": "yes" })); });
    const req = ask(port, { method: "POST", path: "/runs?x=1", headers: { "x-ask": "hello", connection: "x-private", "x-private": "1" } });
    req.end("a body");
    const res = await answer(req);
    expect([res.statusCode, res.headers["x-answer"], await body(res)]).toEqual([201, "yes", "a body"]);
    expect([seen?.method, seen?.url, seen?.headers.host, seen?.headers["x-ask"], seen?.headers["knative-serving-revision"]]).toEqual(["POST", "/runs?x=1", "svc", "hello", "rev"]);
    expect(seen?.headers["x-private"]).toBeUndefined();
    expect(seen?.headers["x-forwarded-for"]).toBe("127.0.0.1");
  });

  test("answers 404 for a host without a route and 502 for a service that refuses", async () => {
    const port = await behind((_req, res) => { res.destroy(); });
    const unknown = ask(port, { host: "nobody" });
    unknown.end();
    expect((await answer(unknown)).statusCode).toBe(404);
    const refused = ask(port);
    refused.end();
    const res = await answer(refused);
    expect([res.statusCode, await body(res)]).toEqual([502, expect.stringContaining("rev.ns")]);
  });

  test("streams: the first part arrives before the last is written", async () => {
    let finish = () => {};
    const port = await behind((_req, res) => { res.write("first "); finish = () => res.end("last"); });
    const req = ask(port);
    req.end();
    const res = await answer(req);
    const [first] = (await once(res, "data")) as [Buffer];
    expect(first.toString()).toBe("first ");
    finish();
    expect(await body(res)).toBe("last");
  });

  test("an answer that breaks off midway does not end like a whole one", async () => {
    const port = await behind((_req, res) => { res.write("half", () => res.destroy()); });
    const req = ask(port);
    req.end();
    await expect(answer(req).then(body)).rejects.toThrow(/aborted/);
  });

  test("a caller that leaves takes the request to the service with it", async () => {
    const left = new Promise<void>((resolve) => {
      void behind((_req, res) => { res.on("close", resolve); res.write("x"); }).then(async (port) => {
        const req = ask(port);
        req.on("error", () => {});
        req.end();
        await answer(req);
        req.destroy();
      });
    });
    await left;
  });

  test("hop-by-hop headers are those of the standard and those named by Connection", () => {
    expect(withoutHopByHop({ connection: "close, X-One", "x-one": "1", "keep-alive": "5", te: "trailers", accept: "*/*" })).toEqual({ accept: "*/*" });
  });
});
