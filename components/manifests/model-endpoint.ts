import { type KubeObject } from "../kube";
import { metadata, names, type Place, ports, restrictedContainer, restrictedPod, service } from "./common";

/** The scripted model: a server in the cluster that speaks the Anthropic Messages protocol and needs no key. */
export function modelEndpoint(place: Place, image: string): { deployment: KubeObject; service: KubeObject } {
  const name = names.model;
  return {
    service: service(place, name, [{ name: "http", port: ports.http }]),
    deployment: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: metadata(place, name),
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: {
            automountServiceAccountToken: false,
            securityContext: restrictedPod(),
            containers: [{
              name,
              image,
              env: [{ name: "PORT", value: String(ports.http) }],
              ports: [{ name: "http", containerPort: ports.http }],
              readinessProbe: { httpGet: { path: "/health", port: "http" }, periodSeconds: 2 },
              resources: { requests: { cpu: "10m", memory: "48Mi" }, limits: { memory: "256Mi" } },
              securityContext: restrictedContainer,
            }],
          },
        },
      },
    },
  };
}
