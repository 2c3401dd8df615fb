import { type KubeObject } from "../kube";
import { metadata, names, type Place, poolLabel, restrictedContainer, restrictedPod } from "./common";

/** Pods in which tool calls run by `kubectl exec`: a shell, the tools, `/workspace`, no network (see network-policies) and no token. */
export function sandboxPool(place: Place, image: string, replicas: number): KubeObject {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: metadata(place, names.pool),
    spec: {
      replicas,
      selector: { matchLabels: { app: names.pool } },
      template: {
        metadata: { labels: { app: names.pool, ...poolLabel } },
        spec: {
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          securityContext: restrictedPod(),
          terminationGracePeriodSeconds: 5,
          containers: [{
            name: "sandbox",
            image,
            // As process 1 the shell also reaps what killed commands leave behind.
            command: ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"],
            workingDir: "/workspace",
            env: [{ name: "HOME", value: "/workspace" }],
            resources: { requests: { cpu: "25m", memory: "32Mi" }, limits: { memory: "256Mi" } },
            securityContext: restrictedContainer,
            volumeMounts: [{ name: "workspace", mountPath: "/workspace" }, { name: "tmp", mountPath: "/tmp" }],
          }],
          volumes: [{ name: "workspace", emptyDir: {} }, { name: "tmp", emptyDir: {} }],
        },
      },
    },
  };
}
