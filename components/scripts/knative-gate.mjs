// Waits until Knative admits a Service: its webhook answers a little later than its pod is Ready, and what is written in between is
// refused. The test is the write itself, as a server-side dry run, so nothing is created.
// Variables: KUBECONFIG_TEXT, KUBE_CONTEXT (may be empty), NAMESPACE.
import https from "node:https";
import { setTimeout as pause } from "node:timers/promises";
import { KubeConfig } from "@kubernetes/client-node";
import { runScript, Unfit, variable } from "./lib.mjs";

const DEADLINE_MS = 180_000;

const probe = (namespace) => ({
  apiVersion: "serving.knative.dev/v1",
  kind: "Service",
  metadata: { name: "dialout-gate", namespace },
  spec: { template: { spec: { containers: [{ image: "dev.local/gate:1" }] } } },
});

async function post(config, url, body) {
  const options = { method: "POST", headers: { "content-type": "application/json" }, timeout: 15_000 };
  await config.applyToHTTPSOptions(options);
  return new Promise((resolve, reject) => {
    const req = https.request(url, options, (res) => {
      let text = "";
      res.setEncoding("utf8").on("data", (d) => { text += d; }).on("end", () => resolve({ status: res.statusCode, text }));
    });
    req.on("timeout", () => req.destroy(new Error("no answer within 15 s")));
    req.on("error", reject);
    req.end(JSON.stringify(body));
  });
}

await runScript(async () => {
  const config = new KubeConfig();
  config.loadFromString(variable("KUBECONFIG_TEXT"));
  if (process.env.KUBE_CONTEXT) config.setCurrentContext(process.env.KUBE_CONTEXT);
  const namespace = variable("NAMESPACE");
  const url = new URL(`${config.getCurrentCluster().server}/apis/serving.knative.dev/v1/namespaces/${namespace}/services?dryRun=All`);
  const end = Date.now() + DEADLINE_MS;
  for (let last = ""; ; ) {
    try {
      const r = await post(config, url, probe(namespace));
      if (r.status === 201) break;
      last = `${r.status} ${r.text.slice(0, 300)}`;
      if (r.status === 404 && /could not find the requested resource|page not found/.test(r.text)) last = "Knative Serving is not installed (no serving.knative.dev/v1)";
    } catch (e) {
      last = e.message;
    }
    if (Date.now() > end) throw new Unfit(`Knative does not admit a Service after ${DEADLINE_MS / 1000} s; last answer: ${last}. See: kubectl get pods -n knative-serving`);
    await pause(200);
  }
  process.stdout.write("admitted");
});
