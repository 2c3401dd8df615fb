import { readFileSync } from "node:fs";
import { type IncomingMessage } from "node:http";
import { request } from "node:https";

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Where a pod finds the API server. Throws, naming the variable, outside a pod. */
export function podApi() {
  const host = process.env.KUBERNETES_SERVICE_HOST;
  if (!host) throw new Error("KUBERNETES_SERVICE_HOST is not set: this program runs as a pod (lab/manifests/lab-ingress.yaml)");
  return { host, port: Number(process.env.KUBERNETES_SERVICE_PORT ?? 443), ca: readFileSync(`${SERVICE_ACCOUNT}/ca.crt`) };
}
export type Api = ReturnType<typeof podApi>;

/** @param idleMs how long no byte may come before the call fails */
function open(api: Api, method: string, path: string, idleMs: number, body?: unknown): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // The token is read on each call: the kubelet replaces it every hour.
    const headers = { authorization: `Bearer ${readFileSync(`${SERVICE_ACCOUNT}/token`, "utf8").trim()}`, ...(body ? { "content-type": "application/merge-patch+json" } : {}) };
    const req = request({ ...api, method, path, headers, timeout: idleMs }, resolve);
    req.on("timeout", () => req.destroy(new Error(`${method} ${path}: silent for ${idleMs} ms`)));
    req.on("error", reject);
    req.end(body ? JSON.stringify(body) : undefined);
  });
}

async function text(answer: IncomingMessage): Promise<string> {
  let all = "";
  answer.setEncoding("utf8");
  for await (const part of answer) all += part;
  return all;
}

/** One call with a JSON answer; a status of 300 or more is an error that quotes the answer's start. */
export async function call(api: Api, method: string, path: string, body?: unknown): Promise<unknown> {
  const answer = await open(api, method, path, 10_000, body);
  const content = await text(answer);
  if ((answer.statusCode ?? 500) >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${content.slice(0, 300)}`);
  return JSON.parse(content);
}

/** Events of a watch, in order, until the server ends it (after `seconds`). */
export async function* watch(api: Api, path: string, seconds: number): AsyncGenerator<{ type: string; object: unknown }> {
  const answer = await open(api, "GET", `${path}&watch=1&timeoutSeconds=${seconds}`, (seconds + 15) * 1000);
  if (answer.statusCode !== 200) throw new Error(`watch ${path}: ${answer.statusCode} ${(await text(answer)).slice(0, 300)}`);
  answer.setEncoding("utf8");
  yield* jsonLines(answer);
}

/** One JSON value a line; a last line without its end is dropped. */
export async function* jsonLines<T>(parts: AsyncIterable<string>): AsyncGenerator<T> {
  let rest = "";
  for await (const part of parts) {
    const lines = (rest + part).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim()) yield JSON.parse(line) as T;
  }
}
