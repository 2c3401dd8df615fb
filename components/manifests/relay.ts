import { type KubeObject } from "../kube";
import { inCluster, metadata, names, type Place, ports, restrictedContainer, restrictedPod, secretEnv, service } from "./common";

const TLS_DIR = "/run/relay-tls";

/**
 * The relay: Deployment, the Service for callers inside, and the NodePort through which a worker outside attaches. Only the attach
 * port is ever reachable from outside; commands go through the exec port, which the NodePort does not have. `tlsSecret` names the
 * Secret (kubernetes.io/tls) with the attach listener's certificate; undefined: plaintext.
 */
export function relay(place: Place, image: string, tlsSecret?: string): { deployment: KubeObject; service: KubeObject; attachNodePort: KubeObject } {
  const name = names.relay;
  return {
    service: service(place, name, [{ name: "attach", port: ports.attach }, { name: "exec", port: ports.exec }]),
    attachNodePort: {
      apiVersion: "v1",
      kind: "Service",
      metadata: metadata(place, names.relayAttach, { app: name }),
      spec: { type: "NodePort", selector: { app: name }, ports: [{ name: "attach", port: ports.attach, targetPort: ports.attach, nodePort: ports.attachNode, protocol: "TCP" }] },
    },
    deployment: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: metadata(place, name),
      spec: {
        replicas: 1,
        // The old relay must be gone before the new one is asked: a worker attached to the old one is unknown to the new one.
        strategy: { type: "Recreate" },
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: {
            automountServiceAccountToken: false,
            securityContext: restrictedPod(),
            terminationGracePeriodSeconds: 15,
            containers: [{
              name,
              image,
              env: [
                { name: "HOME", value: "/tmp" },
                { name: "REDIS_URL", value: `redis://${inCluster(place, names.redis, ports.redis)}` },
                { name: "SH_RELAY_HOST", value: "0.0.0.0" },
                { name: "SH_RELAY_PORT", value: String(ports.attach) },
                { name: "SH_RELAY_EXEC_PORT", value: String(ports.exec) },
                { name: "SH_RELAY_HEALTH_PORT", value: String(ports.relayHealth) },
                secretEnv("SH_RELAY_TOKEN", names.relaySecret, "SH_RELAY_TOKEN"),
                secretEnv("SH_RELAY_EXEC_TOKEN", names.relaySecret, "SH_RELAY_EXEC_TOKEN"),
                ...(tlsSecret ? [{ name: "SH_RELAY_TLS_CERT_FILE", value: `${TLS_DIR}/tls.crt` }, { name: "SH_RELAY_TLS_KEY_FILE", value: `${TLS_DIR}/tls.key` }] : []),
              ],
              ports: [{ name: "attach", containerPort: ports.attach }, { name: "exec", containerPort: ports.exec }, { name: "health", containerPort: ports.relayHealth }],
              readinessProbe: { httpGet: { path: "/readyz", port: "health" }, periodSeconds: 2, timeoutSeconds: 2 },
              livenessProbe: { httpGet: { path: "/healthz", port: "health" }, periodSeconds: 10, failureThreshold: 6, timeoutSeconds: 5 },
              resources: { requests: { cpu: "50m", memory: "96Mi" }, limits: { memory: "512Mi" } },
              securityContext: restrictedContainer,
              volumeMounts: [{ name: "tmp", mountPath: "/tmp" }, ...(tlsSecret ? [{ name: "tls", mountPath: TLS_DIR, readOnly: true }] : [])],
            }],
            volumes: [{ name: "tmp", emptyDir: {} }, ...(tlsSecret ? [{ name: "tls", secret: { secretName: tlsSecret, defaultMode: 0o440 } }] : [])],
          },
        },
      },
    },
  };
}
