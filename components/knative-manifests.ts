import { loadAll } from "js-yaml";
import { type KubeObject, unawaited, workload } from "./kube";

export interface KnativeTuning {
  /** `ingress-class` of config-network. */
  ingressClass: string;
}

/** Objects of a manifest; empty documents are dropped. Throws with `source` in the message when it is not Kubernetes YAML. */
export function parseManifest(text: string, source: string): KubeObject[] {
  let docs: unknown[];
  try {
    docs = loadAll(text);
  } catch (e) {
    throw new Error(`${source} is not YAML: ${(e as Error).message.split("\n")[0]}`);
  }
  const objects = docs.filter((d) => d !== null && d !== undefined) as KubeObject[];
  const odd = objects.findIndex((o) => typeof o !== "object" || !o.apiVersion || !o.kind || !o.metadata?.name);
  if (odd >= 0) throw new Error(`${source}: document ${odd + 1} is not a Kubernetes object`);
  if (!objects.length) throw new Error(`${source} holds no Kubernetes object`);
  return objects;
}

/**
 * CPU that Knative's parts ask for, in place of the release's 300m + 4 x 100m and Kourier's 2 x 200m: with those a 2-core node is
 * full before the first pod of ours, and the second pod of a rolling update never schedules. Limits stay as released.
 */
export const CPU_REQUESTS: Record<string, string> = {
  activator: "20m",
  autoscaler: "20m",
  controller: "20m",
  webhook: "20m",
  "net-kourier-controller": "20m",
  "3scale-kourier-gateway": "50m",
};

/** Settings of Knative that the demo relies on (contract 4.5), by ConfigMap. */
export function knativeConfig({ ingressClass }: KnativeTuning): Record<string, Record<string, string>> {
  return {
    "config-network": { "ingress-class": ingressClass },
    "config-domain": { "example.com": "" },
    // Local images have no registry to resolve their tag in. Sidecars count too on a small node.
    "config-deployment": { "registries-skipping-tag-resolving": "kind.local,ko.local,dev.local", "queue-sidecar-cpu-request": "10m" },
    "config-features": {
      "kubernetes.podspec-securitycontext": "enabled",
      "kubernetes.podspec-persistent-volume-claim": "enabled",
      "kubernetes.podspec-persistent-volume-write": "enabled",
    },
    "config-autoscaler": { "stable-window": "20s", "scale-to-zero-grace-period": "10s", "container-concurrency-target-percentage": "100" },
  };
}

/** The objects as they are applied: settings written into the ConfigMaps, requests lowered, autoscalers of Knative itself left out. */
export function tuneKnative(objects: KubeObject[], tuning: KnativeTuning): KubeObject[] {
  const config = knativeConfig(tuning);
  return objects
    // They scale by metrics that a small cluster does not have, and would double what asks for CPU.
    .filter((o) => o.kind !== "HorizontalPodAutoscaler" && o.kind !== "PodDisruptionBudget")
    .map((o) => {
      const settings = o.kind === "ConfigMap" ? config[o.metadata.name] : undefined;
      if (settings) return { ...o, data: { ...o.data, ...settings } };
      if (o.kind === "Service" && o.apiVersion === "v1") return clusterService(o);
      const cpu = o.kind === "Deployment" ? CPU_REQUESTS[o.metadata.name] : undefined;
      return cpu ? withCpuRequest(o, cpu) : o;
    });
}

/**
 * Requests enter by port-forward, and on a kind cluster nobody would ever give a load balancer its address, for which Pulumi waits.
 * Its wait for any other Service takes ten seconds at least, while the Deployment, which is waited for, says the same.
 */
function clusterService(o: KubeObject): KubeObject {
  const spec = { ...(o.spec as Record<string, unknown> | undefined) };
  if (spec.type === "LoadBalancer") {
    spec.type = "ClusterIP";
    delete spec.externalTrafficPolicy;
  }
  return unawaited({ ...o, spec });
}

function withCpuRequest(o: KubeObject, cpu: string): KubeObject {
  const spec = workload(o);
  const containers = spec.template.spec.containers.map((c) => ({ ...c, resources: { ...c.resources, requests: { ...c.resources?.requests, cpu } } }));
  return { ...o, spec: { ...spec, template: { ...spec.template, spec: { ...spec.template.spec, containers } } } };
}

/**
 * The objects in the order they have to come, so that an interrupted run can go on at any point:
 * what pods need (or they would crash and back off) together with Knative's own custom resources, then the pods, and last the
 * registration of the webhook, because from then on every write of such a resource fails until the webhook answers.
 */
export function inStages(objects: KubeObject[]): { base: KubeObject[]; pods: KubeObject[]; webhooks: KubeObject[] } {
  const first = new Set(["CustomResourceDefinition", "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "Secret"]);
  const stage = (o: KubeObject) => (/WebhookConfiguration$/.test(o.kind) ? "webhooks" : first.has(o.kind) || /\.knative\.dev\//.test(o.apiVersion) ? "base" : "pods");
  const of = (name: string) => objects.filter((o) => stage(o) === name);
  return { base: of("base"), pods: of("pods"), webhooks: of("webhooks") };
}
