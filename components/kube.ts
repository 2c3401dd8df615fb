/** Any Kubernetes object, as YAML or JSON has it. Objects are treated as values: functions return changed copies. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; annotations?: Record<string, string> };
  spec?: unknown;
  data?: Record<string, string>;
  [field: string]: unknown;
}

export interface Container {
  name: string;
  image: string;
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
  [field: string]: unknown;
}

interface WithTemplate {
  replicas?: number;
  strategy?: unknown;
  template: { spec: { containers: Container[]; [field: string]: unknown }; [field: string]: unknown };
  [field: string]: unknown;
}

/** The spec of a Deployment (or of what has the same shape), typed as far as we touch it. */
export function workload(o: KubeObject): WithTemplate {
  return o.spec as WithTemplate;
}

/** CPU quantity in thousandths: "100m" is 100, "1" is 1000. */
export function millicores(quantity: string | undefined): number {
  if (!quantity) return 0;
  return quantity.endsWith("m") ? Number(quantity.slice(0, -1)) : Number(quantity) * 1000;
}

/** The objects as one YAML text (JSON documents). As text, because Pulumi's SDK takes seconds to pass a megabyte of nested values on. */
export function toYaml(objects: readonly KubeObject[]): string {
  return objects.map((o) => JSON.stringify(o)).join("\n---\n");
}

/** Every image the objects make a node run: of their pods, and the one Knative puts beside each pod. */
export function imagesOf(objects: readonly KubeObject[]): string[] {
  const found = objects.flatMap((o) => {
    if (o.kind === "ConfigMap") return o.data?.["queue-sidecar-image"] ?? [];
    const pod = (o.spec as { template?: { spec?: { containers?: Container[]; initContainers?: Container[] } } } | undefined)?.template?.spec;
    return [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])].map((c) => c.image);
  });
  return [...new Set(found)].sort();
}

/** The object with the mark by which Pulumi does not wait until it thinks it ready. */
export function unawaited(o: KubeObject): KubeObject {
  return { ...o, metadata: { ...o.metadata, annotations: { ...o.metadata.annotations, "pulumi.com/skipAwait": "true" } } };
}
