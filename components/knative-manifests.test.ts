import { describe, expect, it } from "vitest";
import { imagesOf, type KubeObject, workload } from "./kube";
import { inStages, parseManifest, tuneKnative } from "./knative-manifests";

const deployment = (name: string): KubeObject => ({
  apiVersion: "apps/v1", kind: "Deployment", metadata: { name, namespace: "knative-serving" },
  spec: { template: { spec: { containers: [{ name: "c", image: "i", resources: { requests: { cpu: "300m", memory: "60Mi" }, limits: { cpu: "1" } } }] } } },
});
const tuning = { ingressClass: "x.ingress.networking.knative.dev" };

describe("parseManifest", () => {
  it("skips empty documents", () => expect(parseManifest("---\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n", "f")).toHaveLength(1));
  it.each([["a: [", /^f is not YAML/], ["a: 1", /document 1 is not a Kubernetes object/], ["---\n", /holds no Kubernetes object/], ["<html>nope</html>", /is not/]])("refuses %j", (text, message) => {
    expect(() => parseManifest(text, "f")).toThrow(message);
  });
});

describe("tuneKnative", () => {
  it("writes settings beside what a ConfigMap holds, and leaves its input as it was", () => {
    const before: KubeObject = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "config-network" }, data: { _example: "e" } };
    const [after] = tuneKnative([before], tuning);
    expect(after!.data).toEqual({ _example: "e", "ingress-class": tuning.ingressClass });
    expect(before.data).toEqual({ _example: "e" });
  });
  it("lowers CPU requests only", () => {
    const [a] = tuneKnative([deployment("activator")], tuning);
    expect(workload(a!).template.spec.containers[0]!.resources).toEqual({ requests: { cpu: "20m", memory: "60Mi" }, limits: { cpu: "1" } });
  });
  it("leaves a Deployment it does not know alone", () => expect(tuneKnative([deployment("other")], tuning)).toEqual([deployment("other")]));
  it("asks for no load balancer, which a kind cluster has none of", () => {
    const service: KubeObject = { apiVersion: "v1", kind: "Service", metadata: { name: "kourier" }, spec: { type: "LoadBalancer", externalTrafficPolicy: "Local", ports: [{ port: 80 }] } };
    expect(tuneKnative([service], tuning)[0]!.spec).toEqual({ type: "ClusterIP", ports: [{ port: 80 }] });
  });
  it("turns a load balancer, which a small cluster cannot give, into a plain Service; others keep their type", () => {
    const service = (type?: string): KubeObject => ({ apiVersion: "v1", kind: "Service", metadata: { name: "s" }, spec: { ...(type ? { type } : {}), ports: [] } });
    expect(tuneKnative([service("LoadBalancer"), service(), service("NodePort")], tuning).map((s) => (s.spec as { type?: string }).type)).toEqual(["ClusterIP", undefined, "NodePort"]);
  });
  it("drops Knative's own autoscalers", () => {
    const o = (kind: string): KubeObject => ({ apiVersion: "v1", kind, metadata: { name: "n" } });
    expect(tuneKnative([o("HorizontalPodAutoscaler"), o("PodDisruptionBudget"), o("Service")], tuning).map((x) => x.kind)).toEqual(["Service"]);
  });
});

it("what pods need comes before pods, the webhook's registration last, and nothing is lost", () => {
  const o = (kind: string, apiVersion = "v1"): KubeObject => ({ apiVersion, kind, metadata: { name: kind } });
  const objects = [o("Deployment"), o("ConfigMap"), o("ValidatingWebhookConfiguration"), o("Service"), o("Certificate", "networking.internal.knative.dev/v1alpha1")];
  const { base, pods, webhooks } = inStages(objects);
  expect(base.map((x) => x.kind)).toEqual(["ConfigMap", "Certificate"]);
  expect(pods.map((x) => x.kind)).toEqual(["Deployment", "Service"]);
  expect(webhooks.map((x) => x.kind)).toEqual(["ValidatingWebhookConfiguration"]);
});

it("finds every image a node will run, the sidecar's too, once each", () => {
  const sidecar: KubeObject = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "config-deployment" }, data: { "queue-sidecar-image": "q:1" } };
  expect(imagesOf([deployment("a"), deployment("b"), sidecar, { apiVersion: "v1", kind: "Service", metadata: { name: "s" }, spec: {} }])).toEqual(["i", "q:1"]);
});
