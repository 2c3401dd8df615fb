// The lab's stand-in for a Knative ingress: watches Ingresses of its class, proxies HTTP by host name. Runs on Node 22 as it is (types are
// stripped), because the lab has no bundler before `npm ci`. What it is not: see lab/README.md.
import { createServer } from "node:http";
import { Controller } from "./controller.ts";
import { podApi } from "./kube.ts";
import { createProxy } from "./proxy.ts";

const log = (text: string) => console.log(`${new Date().toISOString()} ${text}`);
const stop = new AbortController();
const controller = new Controller({
  api: podApi(),
  ingressClass: process.env.INGRESS_CLASS ?? "lab.ingress.networking.knative.dev",
  domain: process.env.INGRESS_DOMAIN ?? "lab-ingress.knative-serving.svc.cluster.local",
  log,
  signal: stop.signal,
});
const proxy = createProxy({ table: () => controller.table });
const health = createServer((_req, res) => { res.writeHead(controller.synced ? 200 : 503).end(); });

proxy.listen(8080, () => log("proxy on 8080"));
health.listen(8081);
void controller.run();

process.once("SIGTERM", () => {
  stop.abort();
  health.close();
  // Requests under way may finish; the kubelet kills what takes longer than the grace period.
  proxy.close(() => process.exit(0));
  proxy.closeIdleConnections();
});
