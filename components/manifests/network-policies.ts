import { type KubeObject } from "../kube";
import { arms } from "../ksvc-overlay";
import { metadata, names, type Place, ports } from "./common";

const tcp = (...list: number[]) => list.map((port) => ({ protocol: "TCP", port }));
const pods = (...apps: string[]) => apps.map((app) => ({ podSelector: { matchLabels: { app } } }));
/** Pods of the harness and its arms; Knative labels them with their Service. */
const harnessPods = { matchExpressions: [{ key: "serving.knative.dev/service", operator: "In", values: [names.harness, ...Object.values(arms).map((a) => a.service)] }] };
const dns = [
  { to: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "kube-system" } } }], ports: [{ protocol: "UDP", port: 53 }, { protocol: "TCP", port: 53 }] },
  // OpenShift's DNS answers on 5353 behind its Service
  { to: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "openshift-dns" } } }], ports: [{ protocol: "UDP", port: 5353 }, { protocol: "TCP", port: 5353 }] },
];

function policy(place: Place, name: string, spec: Record<string, unknown>): KubeObject {
  return { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: metadata(place, name, { app: name }), spec };
}

/**
 * Who may talk to whom. `modelPort`: a port of a model endpoint outside the cluster other than 443, if there is one.
 * The kubelet's probes and port-forwards come from the node and are not subject to these.
 */
export function networkPolicies(place: Place, modelPort?: number): KubeObject[] {
  const outside = [443, 6443, ...(modelPort && ![443, 6443].includes(modelPort) ? [modelPort] : [])];
  return [
    policy(place, "sandbox-relay", {
      podSelector: { matchLabels: { app: names.relay } },
      policyTypes: ["Ingress", "Egress"],
      ingress: [
        // A worker arrives through the node, or from a pod; its token decides.
        { ports: tcp(ports.attach) },
        { from: [{ podSelector: harnessPods }], ports: tcp(ports.exec) },
        { ports: tcp(ports.relayHealth) },
      ],
      egress: [...dns, { to: pods(names.redis), ports: tcp(ports.redis) }],
    }),
    policy(place, "redis", {
      podSelector: { matchLabels: { app: names.redis } },
      policyTypes: ["Ingress", "Egress"],
      ingress: [{ from: [...pods(names.relay), { podSelector: harnessPods }], ports: tcp(ports.redis) }],
      egress: [],
    }),
    policy(place, "model-endpoint", {
      podSelector: { matchLabels: { app: names.model } },
      policyTypes: ["Ingress", "Egress"],
      ingress: [{ from: [{ podSelector: harnessPods }], ports: tcp(ports.http) }],
      egress: [],
    }),
    // Commands of the model run here: they reach nothing, and nothing reaches them but exec.
    policy(place, "sandbox-pool", { podSelector: { matchLabels: { app: names.pool } }, policyTypes: ["Ingress", "Egress"], ingress: [], egress: [] }),
    policy(place, "serverless-harness-egress", {
      podSelector: harnessPods,
      policyTypes: ["Egress"],
      egress: [
        ...dns,
        { to: pods(names.redis), ports: tcp(ports.redis) },
        { to: pods(names.relay), ports: tcp(ports.exec) },
        { to: pods(names.model), ports: tcp(ports.http) },
        // The API server (exec into pool pods) and a hosted model.
        { to: [{ ipBlock: { cidr: "0.0.0.0/0" } }], ports: tcp(...outside) },
      ],
    }),
  ];
}
