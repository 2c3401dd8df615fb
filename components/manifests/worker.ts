import { type KubeObject } from "../kube";
import { inCluster, metadata, names, type Place, ports, restrictedContainer, restrictedPod } from "./common";

const TOKEN_DIR = "/run/dialout";

/**
 * A worker as a pod, for clusters whose sandboxes are reached through the relay as well. It is not root here, so it cannot give
 * its commands another user, and says so in its log: use it where commands may read the worker's token.
 */
export function podWorker(place: Place, image: string, id = "sbx-in-cluster"): { account: KubeObject; deployment: KubeObject } {
  const name = names.worker;
  return {
    account: { apiVersion: "v1", kind: "ServiceAccount", metadata: metadata(place, name), automountServiceAccountToken: false },
    deployment: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: metadata(place, name),
      spec: {
        // An id is one worker; a second replica would take it over from the first.
        replicas: 1,
        strategy: { type: "Recreate" },
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: {
            serviceAccountName: name,
            automountServiceAccountToken: false,
            enableServiceLinks: false,
            securityContext: restrictedPod(1001),
            terminationGracePeriodSeconds: 15,
            containers: [{
              name,
              image,
              env: [
                { name: "HOME", value: "/tmp" },
                { name: "SANDBOX_ID", value: id },
                { name: "RELAY_ADDR", value: inCluster(place, names.relay, ports.attach) },
                { name: "SANDBOX_TOKEN_FILE", value: `${TOKEN_DIR}/SH_RELAY_TOKEN` },
              ],
              workingDir: "/workspace",
              resources: { requests: { cpu: "50m", memory: "160Mi" }, limits: { memory: "512Mi" } },
              securityContext: restrictedContainer,
              volumeMounts: [{ name: "token", mountPath: TOKEN_DIR, readOnly: true }, { name: "workspace", mountPath: "/workspace" }, { name: "tmp", mountPath: "/tmp" }],
            }],
            volumes: [
              { name: "token", secret: { secretName: names.relaySecret, defaultMode: 0o440, items: [{ key: "SH_RELAY_TOKEN", path: "SH_RELAY_TOKEN" }] } },
              { name: "workspace", emptyDir: {} },
              { name: "tmp", emptyDir: {} },
            ],
          },
        },
      },
    },
  };
}
