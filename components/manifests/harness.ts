import { type KubeObject } from "../kube";
import { inCluster, metadata, names, type Place, poolSelector, ports, restrictedContainer, restrictedPod, secretEnv } from "./common";

/** One env entry, kept as a whole object: `{name, value}` or `{name, valueFrom}`. */
export interface EnvEntry {
  name: string;
  value?: string;
  valueFrom?: unknown;
}

export interface KnativeService extends KubeObject {
  spec: { template: { metadata: { annotations: Record<string, string> }; spec: { containers: { env: EnvEntry[]; [field: string]: unknown }[]; [field: string]: unknown } } };
}

export interface HarnessImage {
  image: string;
  /** Path of kubectl in it. */
  kubectl: string;
}

/** Settings of the model, as env entries of the harness; credentials stay in the Secret. */
export interface HarnessModel {
  name: string;
  env: EnvEntry[];
}

/** The harness as a Knative Service (contract 4.5), transport `pods`. Other arms are overlays of this one. */
export function harnessService(place: Place, harness: HarnessImage, model: HarnessModel): KnativeService {
  return {
    apiVersion: "serving.knative.dev/v1",
    kind: "Service",
    metadata: { name: names.harness, namespace: place.namespace },
    spec: {
      template: {
        metadata: {
          annotations: {
            "autoscaling.knative.dev/min-scale": "0",
            "autoscaling.knative.dev/max-scale": "5",
            "autoscaling.knative.dev/scale-to-zero-pod-retention-period": "30s",
            "autoscaling.knative.dev/target": "1",
            "autoscaling.knative.dev/target-burst-capacity": "0",
          },
        },
        spec: {
          containerConcurrency: 1,
          timeoutSeconds: 300,
          serviceAccountName: names.harness,
          enableServiceLinks: false,
          securityContext: { runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: restrictedPod().seccompProfile },
          containers: [{
            image: harness.image,
            ports: [{ containerPort: ports.http }],
            env: [
              { name: "HOME", value: "/tmp" },
              { name: "REDIS_URL", value: `redis://${inCluster(place, names.redis, ports.redis)}` },
              { name: "SH_MODEL", value: model.name },
              { name: "KAGENTI_SANDBOX_POOL_SELECTOR", value: poolSelector },
              { name: "LEAF_RESULT_TTL_SECONDS", value: "86400" },
              secretEnv("ANTHROPIC_API_KEY", names.modelSecret, "api-key"),
              secretEnv("ANTHROPIC_BASE_URL", names.modelSecret, "base-url", true),
              secretEnv("ANTHROPIC_AUTH_TOKEN", names.modelSecret, "auth-token", true),
              { name: "KUBECTL", value: harness.kubectl },
              ...(place.namespace === "default" ? [] : [{ name: "KAGENTI_SANDBOX_NAMESPACE", value: place.namespace }]),
              ...model.env,
            ],
            readinessProbe: { httpGet: { path: "/health", port: ports.http }, initialDelaySeconds: 2, periodSeconds: 5 },
            resources: { requests: { cpu: "100m", memory: "256Mi" }, limits: { cpu: "500m", memory: "512Mi" } },
            securityContext: restrictedContainer,
            volumeMounts: [{ name: "tmp", mountPath: "/tmp" }],
          }],
          volumes: [{ name: "tmp", emptyDir: {} }],
        },
      },
    },
  };
}

/** What the harness may do in its namespace: find pool pods and exec into them, nothing else. */
export function harnessAccess(place: Place): { account: KubeObject; role: KubeObject; binding: KubeObject } {
  const role = "serverless-harness-sandbox";
  return {
    account: { apiVersion: "v1", kind: "ServiceAccount", metadata: metadata(place, names.harness) },
    role: {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata: metadata(place, role, { app: names.harness }),
      rules: [
        { apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] },
        // kubectl that execs over WebSocket asks with GET
        { apiGroups: [""], resources: ["pods/exec"], verbs: ["create", "get"] },
      ],
    },
    binding: {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: metadata(place, role, { app: names.harness }),
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: role },
      subjects: [{ kind: "ServiceAccount", name: names.harness, namespace: place.namespace }],
    },
  };
}
