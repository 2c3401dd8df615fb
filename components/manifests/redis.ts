import { type KubeObject } from "../kube";
import { metadata, names, type Place, ports, restrictedContainer, restrictedPod, service } from "./common";

/** Redis for sessions, leases and presence; in memory only, like the base system. Both the official image and the lab's take these args. */
export function redis(place: Place, image: string): { deployment: KubeObject; service: KubeObject } {
  const name = names.redis;
  const ping = { exec: { command: ["redis-cli", "ping"] }, timeoutSeconds: 3 };
  return {
    service: service(place, name, [{ name: "redis", port: ports.redis }]),
    deployment: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: metadata(place, name),
      spec: {
        replicas: 1,
        // Two at once would split presence between them.
        strategy: { type: "Recreate" },
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: {
            automountServiceAccountToken: false,
            securityContext: restrictedPod(999),
            containers: [{
              name,
              image,
              args: ["--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--appendonly", "no", "--maxmemory", "192mb"],
              ports: [{ name: "redis", containerPort: ports.redis }],
              readinessProbe: { ...ping, periodSeconds: 5 },
              livenessProbe: { ...ping, periodSeconds: 15, failureThreshold: 4 },
              resources: { requests: { cpu: "20m", memory: "32Mi" }, limits: { memory: "256Mi" } },
              securityContext: restrictedContainer,
              volumeMounts: [{ name: "data", mountPath: "/data" }],
            }],
            volumes: [{ name: "data", emptyDir: {} }],
          },
        },
      },
    },
  };
}
