import { createServer, type Server } from "node:http";
import type { Metrics } from "./metrics";

export interface HealthState {
  /** Takes new work. */
  ready: boolean;
  redis: "reachable" | "unreachable";
  attached: number;
}

/**
 * /healthz: the process answers. /readyz: 200 while the relay takes work, 503 once it drains. Redis is reported but does not
 * decide: taking the relay out of its Service would cut workers and callers off that need no Redis at all.
 * /metrics: Prometheus text.
 */
export function createHealthServer(metrics: Metrics, state: () => HealthState): Server {
  return createServer((req, res) => {
    const answer = (code: number, type: string, body: string) => res.writeHead(code, { "content-type": type }).end(body);
    const route = (req.url ?? "").split("?")[0];
    if (req.method !== "GET" && req.method !== "HEAD") return answer(405, "text/plain", "GET only\n");
    if (route === "/healthz") return answer(200, "text/plain", "ok\n");
    if (route === "/readyz") {
      const now = state();
      return answer(now.ready ? 200 : 503, "application/json", `${JSON.stringify(now)}\n`);
    }
    if (route === "/metrics") {
      return void metrics.registry.metrics().then(
        (text) => answer(200, metrics.registry.contentType, text),
        (e: Error) => answer(500, "text/plain", `${e.message}\n`),
      );
    }
    return answer(404, "text/plain", "known paths: /healthz /readyz /metrics\n");
  });
}
