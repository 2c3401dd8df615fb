import { type KubeObject } from "../kube";

/** Where and under which names everything is; every builder gets it. */
export interface Place {
  readonly namespace: string;
}

export const names = {
  harness: "serverless-harness",
  relay: "sandbox-relay",
  relayAttach: "sandbox-relay-attach",
  relaySecret: "sh-relay-token",
  relayTls: "sandbox-relay-tls",
  redis: "redis",
  model: "model-endpoint",
  modelSecret: "llm-credentials",
  pool: "sandbox-pool",
  worker: "remote-worker",
} as const;

export const ports = { attach: 8443, exec: 8444, relayHealth: 8081, attachNode: 30443, redis: 6379, http: 8080 } as const;

/** Label of the pool pods, as the harness's selector has it. */
export const poolLabel = { "sh.kagenti.io/sandbox-pool": "default" };
export const poolSelector = "sh.kagenti.io/sandbox-pool=default";
/** Matches no pod; the harness then finds only remote workers. */
export const remoteSelector = "sh.kagenti.io/sandbox-pool=remote-only";

/** Address of a Service of ours inside the cluster. */
export const inCluster = (place: Place, service: string, port: number) => `${service}.${place.namespace}.svc:${port}`;

export const metadata = (place: Place, name: string, labels: Record<string, string> = { app: name }) => ({ name, namespace: place.namespace, labels });

/** Pod Security Standard "restricted", as a pod's and a container's securityContext. */
export const restrictedPod = (uid = 65532) => ({ runAsNonRoot: true, runAsUser: uid, runAsGroup: uid, fsGroup: uid, seccompProfile: { type: "RuntimeDefault" } });
export const restrictedContainer = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } };

export const secretEnv = (name: string, secret: string, key: string, optional?: boolean) => ({ name, valueFrom: { secretKeyRef: { name: secret, key, ...(optional ? { optional } : {}) } } });

export function service(place: Place, name: string, servicePorts: { name: string; port: number }[]): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadata(place, name),
    spec: { type: "ClusterIP", selector: { app: name }, ports: servicePorts.map((p) => ({ ...p, targetPort: p.port, protocol: "TCP" })) },
  };
}
