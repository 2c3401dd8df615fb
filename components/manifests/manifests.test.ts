import { describe, expect, it } from "vitest";
import { type Container, type KubeObject, millicores, workload } from "../kube";
import { CPU_REQUESTS, knativeConfig } from "../knative-manifests";
import { arms, armEnv, overlay } from "../ksvc-overlay";
import { names, poolLabel, poolSelector, remoteSelector } from "./common";
import { harnessAccess, harnessService } from "./harness";
import { modelEndpoint } from "./model-endpoint";
import { modelPlan, portOf } from "./model";
import { networkPolicies } from "./network-policies";
import { redis } from "./redis";
import { relay } from "./relay";
import { sandboxPool } from "./sandbox-pool";

const place = { namespace: "default" };
const model = modelPlan(place, "scripted");
const deployments = (): KubeObject[] => [redis(place, "r").deployment, relay(place, "r").deployment, modelEndpoint(place, "m").deployment, sandboxPool(place, "p", 2)];
const ksvc = harnessService(place, { image: "dev.local/dialout-harness:1", kubectl: "/usr/local/bin/kubectl" }, model);
const containers = (o: KubeObject): Container[] => workload(o).template.spec.containers;

describe("the harness service is the contract's", () => {
  const spec = ksvc.spec.template.spec as Record<string, unknown> & { containers: Record<string, unknown>[] };
  it("env in order, model credentials by reference", () => {
    expect(ksvc.spec.template.spec.containers[0]!.env.slice(0, 8)).toEqual([
      { name: "HOME", value: "/tmp" },
      { name: "REDIS_URL", value: "redis://redis.default.svc:6379" },
      { name: "SH_MODEL", value: "scripted-1" },
      { name: "KAGENTI_SANDBOX_POOL_SELECTOR", value: "sh.kagenti.io/sandbox-pool=default" },
      { name: "LEAF_RESULT_TTL_SECONDS", value: "86400" },
      { name: "ANTHROPIC_API_KEY", valueFrom: { secretKeyRef: { name: "llm-credentials", key: "api-key" } } },
      { name: "ANTHROPIC_BASE_URL", valueFrom: { secretKeyRef: { name: "llm-credentials", key: "base-url", optional: true } } },
      { name: "ANTHROPIC_AUTH_TOKEN", valueFrom: { secretKeyRef: { name: "llm-credentials", key: "auth-token", optional: true } } },
    ]);
  });
  it("scaling, concurrency and time limit", () => {
    expect(ksvc.spec.template.metadata.annotations).toMatchObject({ "autoscaling.knative.dev/min-scale": "0", "autoscaling.knative.dev/max-scale": "5", "autoscaling.knative.dev/target": "1" });
    expect(spec).toMatchObject({ containerConcurrency: 1, timeoutSeconds: 300, serviceAccountName: "serverless-harness" });
  });
  it("may only find pods and exec into them", () => {
    expect((harnessAccess(place).role.rules as { resources: string[] }[]).flatMap((r) => r.resources)).toEqual(["pods", "pods/exec"]);
  });
});

describe("every pod of ours", () => {
  const all = [...deployments().map((d) => ({ name: d.metadata.name, pod: workload(d).template.spec })), { name: "harness", pod: ksvc.spec.template.spec }];
  it.each(all)("$name runs restricted, with a numeric user and bounded memory", ({ pod }) => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: expect.any(Number) as number, seccompProfile: { type: "RuntimeDefault" } });
    for (const c of pod.containers as unknown as Container[]) {
      expect(c.securityContext).toMatchObject({ allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] }, readOnlyRootFilesystem: true });
      expect(c.resources?.limits?.memory).toBeTruthy();
      expect(c.resources?.requests?.cpu).toBeTruthy();
    }
  });
});

describe("the relay", () => {
  const r = relay(place, "i");
  it("is ready when it says so, not when it runs", () => expect(containers(r.deployment)[0]!.readinessProbe).toMatchObject({ httpGet: { path: "/readyz", port: "health" } }));
  it("gives outsiders the attach port only", () => {
    expect(r.attachNodePort.spec).toMatchObject({ type: "NodePort", ports: [{ port: 8443, nodePort: 30443 }] });
    expect((r.attachNodePort.spec as { ports: unknown[] }).ports).toHaveLength(1);
  });
  it("takes both tokens from the Secret", () => {
    const env = containers(r.deployment)[0]!.env as { name: string; value?: string; valueFrom?: unknown }[];
    for (const name of ["SH_RELAY_TOKEN", "SH_RELAY_EXEC_TOKEN"]) expect(env.find((e) => e.name === name)).toEqual({ name, valueFrom: { secretKeyRef: { name: "sh-relay-token", key: name } } });
  });
});

it("the pool carries the label that the pods selector asks for, and no pod the remote one", () => {
  const labels = (workload(sandboxPool(place, "i", 2)).template as unknown as { metadata: { labels: Record<string, string> } }).metadata.labels;
  const matches = (selector: string) => Object.entries(labels).some(([k, v]) => `${k}=${v}` === selector);
  expect(labels).toMatchObject(poolLabel);
  expect(matches(poolSelector)).toBe(true);
  expect(matches(remoteSelector)).toBe(false);
});

describe("network policies", () => {
  type Rule = { from?: unknown[]; to?: unknown[]; ports?: { port: number }[] };
  const of = (name: string, port?: number) => networkPolicies(place, port).find((p) => p.metadata.name === name)!.spec as { ingress?: Rule[]; egress?: Rule[]; policyTypes: string[] };
  const rulesFor = (rules: Rule[] | undefined, port: number) => (rules ?? []).filter((r) => r.ports?.some((p) => p.port === port));
  it("only the harness and its arms reach the exec port", () => {
    const [rule, ...more] = rulesFor(of("sandbox-relay").ingress, 8444);
    expect(more).toEqual([]);
    expect(JSON.stringify(rule!.from)).toContain(JSON.stringify([names.harness, ...Object.values(arms).map((a) => a.service)]));
  });
  it("Redis only from relay and harness", () => expect(of("redis").ingress!.flatMap((r) => r.from)).toHaveLength(2));
  it("pool pods reach nothing and are reached by nothing", () => expect(of("sandbox-pool")).toMatchObject({ ingress: [], egress: [], policyTypes: ["Ingress", "Egress"] }));
  it("a model on a port of its own is let through, and only then", () => {
    const open = (port?: number) => JSON.stringify(of("serverless-harness-egress", port).egress).includes("11434");
    expect([open(), open(11434)]).toEqual([false, true]);
  });
});

describe("models", () => {
  it.each([["http://x", 80], ["https://x", 443], ["http://x:11434/v1", 11434]] as const)("%s is on port %d", (url, port) => expect(portOf(url)).toBe(port));
  it("the scripted one says so wherever it is named", () => expect(model.label).toMatch(/scripted/));
  it("no key is ever a plain env value", () => {
    for (const kind of ["scripted", "anthropic", "openai-compatible", "ollama"] as const) {
      for (const e of modelPlan(place, kind, "m", "https://m").env) if (/KEY|TOKEN/.test(e.name)) expect(e.value).toBeUndefined();
    }
  });
});

it("all of it fits a 2-core node, also while the largest rolling update runs", () => {
  const system = 950; // kind 0.30: coredns 2 x 100, etcd 100, apiserver 250, controller-manager 200, scheduler 100, kindnet 100
  const sum = (list: Container[]) => list.reduce((n, c) => n + millicores(c.resources?.requests?.cpu), 0);
  const knative = Object.values(CPU_REQUESTS).reduce((n, q) => n + millicores(q), 0);
  const queue = millicores(knativeConfig({ ingressClass: "x" })["config-deployment"]!["queue-sidecar-cpu-request"]);
  const services = [ksvc, ...(Object.keys(arms) as (keyof typeof arms)[]).map((a) => overlay(ksvc, arms[a].service, armEnv(place, a)))];
  const perService = services.map((s) => sum(s.spec.template.spec.containers as unknown as Container[]) + queue);
  const perDeployment = deployments().map((d) => sum(containers(d)) * (workload(d).replicas ?? 1));
  const total = system + knative + [...perService, ...perDeployment].reduce((a, b) => a + b, 0);
  expect(total + Math.max(...perService)).toBeLessThanOrEqual(2000);
});
