import http from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { UserError } from "../provider/errors";
import { Engine, EngineError, parseHost } from "./engine";

const seen: { url?: string; type?: string; body: string }[] = [];
const server = http.createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    seen.push({ url: request.url, type: request.headers["content-type"], body: Buffer.concat(chunks).toString() });
    if (request.url === "/hang") return;
    if (request.url === "/half") return response.write('{"a":1}\n{');
    if (request.url === "/torn") return response.write("{", () => response.destroy());
    if (request.url === "/gone") return response.writeHead(404).end('{"message":"No such container: x"}');
    if (request.url === "/odd") return response.writeHead(500).end("plain text\n");
    if (request.url === "/empty") return response.writeHead(204).end();
    if (request.url === "/lines") {
      response.write('{"a":1}\n{"a"');
      return setImmediate(() => response.end(':2}\r\n\n{"a":3}'));
    }
    response.end('{"ok":true}');
  });
});
let engine: Engine;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  engine = new Engine(`tcp://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

test("queries and bodies", async () => {
  expect(await engine.json("POST", "/x", { query: { t: ["a:1", "b"], q: undefined, n: 0, f: false }, body: { A: 1 } })).toEqual({ ok: true });
  expect(seen.at(-1)).toEqual({ url: "/x?t=a%3A1&t=b&n=0&f=false", type: "application/json", body: '{"A":1}' });
  await engine.json("PUT", "/x", { body: Readable.from([Buffer.from("ta"), Buffer.from("r")]) });
  expect(seen.at(-1)).toEqual({ url: "/x", type: "application/x-tar", body: "tar" });
});

test("the daemon's reason is the error", async () => {
  await expect(engine.json("GET", "/gone")).rejects.toMatchObject({ status: 404, message: "Error response from daemon: No such container: x" });
  await expect(engine.json("GET", "/odd")).rejects.toMatchObject({ status: 500, reason: "plain text" });
});

test("what is not there is null, any other refusal is not", async () => {
  expect(await engine.find("/gone")).toBeNull();
  await expect(engine.find("/odd")).rejects.toBeInstanceOf(EngineError);
});

test("an answer may be empty, or a stream of objects in pieces", async () => {
  expect(await engine.json("POST", "/empty")).toBeUndefined();
  const lines = [];
  for await (const line of engine.lines("GET", "/lines")) lines.push(line);
  expect(lines).toEqual([{ a: 1 }, { a: 2 }, { a: 3 }]);
});

test("an abort ends a request with its reason", async () => {
  const controller = new AbortController();
  const answer = engine.json("GET", "/hang", { signal: controller.signal });
  setImmediate(() => controller.abort(new UserError("cancelled")));
  await expect(answer).rejects.toThrow(/^cancelled$/);
});

test("an abort or a break in the middle of an answer", async () => {
  const controller = new AbortController();
  const read = async (): Promise<void> => {
    for await (const line of engine.lines("GET", "/half", { signal: controller.signal })) {
      expect(line).toEqual({ a: 1 });
      controller.abort(new UserError("cancelled"));
    }
  };
  await expect(read()).rejects.toThrow(/^cancelled$/);
  await expect(engine.json("GET", "/torn")).rejects.toThrow(/^the connection to Docker at tcp:.* broke: aborted$/);
});

test("a body that breaks off is the error, not a torn request", async () => {
  const broken = Readable.from((async function* () {
    yield Buffer.from("a");
    throw new UserError("cannot read the context");
  })());
  await expect(engine.json("POST", "/x", { body: broken })).rejects.toThrow("cannot read the context");
});

test("a daemon that is not there is named, with what to look at", async () => {
  await expect(new Engine("unix:///absent/docker.sock").json("GET", "/x")).rejects.toThrow("cannot reach Docker at unix:///absent/docker.sock: connect ENOENT /absent/docker.sock. Is the daemon running (docker version), and is DOCKER_HOST right?");
});

test.each<[string, unknown]>([
  ["unix:///var/run/docker.sock", { socketPath: "/var/run/docker.sock" }],
  ["tcp://10.0.0.1:2376", { host: "10.0.0.1", port: 2376 }],
  ["tcp://[::1]:2375", { host: "::1", port: 2375 }],
  ["http://docker", { host: "docker", port: 2375 }],
])("host %s", (host, where) => expect(parseHost(host)).toEqual(where));

test.each(["ssh://me@there", "npipe:////./pipe/docker", "/var/run/docker.sock", ""])("host '%s' is refused", (host) => {
  expect(() => parseHost(host)).toThrow(`docker stand-in: Docker host '${host}' is not supported`);
});
