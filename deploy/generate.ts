// Writes deploy/manifests from the builders that the Pulumi program uses too: npm run manifests. A test fails when they differ.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { dump } from "js-yaml";
import { armEnv, overlay } from "../components/ksvc-overlay";
import { type KubeObject } from "../components/kube";
import { names, type Place } from "../components/manifests/common";
import { harnessAccess, harnessService } from "../components/manifests/harness";
import { modelEndpoint } from "../components/manifests/model-endpoint";
import { modelPlan } from "../components/manifests/model";
import { networkPolicies } from "../components/manifests/network-policies";
import { redis } from "../components/manifests/redis";
import { relay } from "../components/manifests/relay";
import { sandboxPool } from "../components/manifests/sandbox-pool";
import { podWorker } from "../components/manifests/worker";
import { versions } from "../components/versions";

const place: Place = { namespace: "default" };
const local = (name: string) => `dev.local/dialout-${name}:local`;
const header = "# Made by `npm run manifests` from components/manifests; do not edit.\n";
const yaml = (...objects: object[]) => header + objects.map((o) => dump(o, { lineWidth: 160, noRefs: true })).join("---\n");
/** Without the namespace: kustomize or `kubectl -n` says where. Addresses inside keep naming `default`; see the README there. */
const kustomization = (more: object) => yaml({ apiVersion: "kustomize.config.k8s.io/v1beta1", kind: "Kustomization", ...more });

const secrets: KubeObject[] = [
  { apiVersion: "v1", kind: "Secret", metadata: { name: names.relaySecret, namespace: place.namespace }, type: "Opaque", stringData: { SH_RELAY_TOKEN: "CHANGE-ME: openssl rand -hex 16", SH_RELAY_EXEC_TOKEN: "CHANGE-ME: another one" } },
  { apiVersion: "v1", kind: "Secret", metadata: { name: names.modelSecret, namespace: place.namespace }, type: "Opaque", stringData: { ...modelPlan(place, "scripted").secret } },
];

const TLS_DIR = "/etc/relay-tls";
/** OpenShift: its own certificate for the relay, a passthrough Route (gRPC needs HTTP/2 end to end), and leave to run as the pinned users. */
function openshift(): Record<string, string> {
  const accounts = ["default", names.harness, names.worker].map((name) => ({ kind: "ServiceAccount", name, namespace: place.namespace }));
  return {
    "scc.yaml": yaml({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { name: "dialout-nonroot-v2", namespace: place.namespace },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:openshift:scc:nonroot-v2" },
      subjects: accounts,
    }),
    "route.yaml": yaml({
      apiVersion: "route.openshift.io/v1",
      kind: "Route",
      metadata: { name: names.relay, namespace: place.namespace, labels: { app: names.relay } },
      spec: { to: { kind: "Service", name: names.relay, weight: 100 }, port: { targetPort: "attach" }, tls: { termination: "passthrough", insecureEdgeTerminationPolicy: "None" }, wildcardPolicy: "None" },
    }),
    "kustomization.yaml": kustomization({
      resources: ["../base", "scc.yaml", "route.yaml"],
      patches: [
        { target: { kind: "Service", name: names.relay }, patch: JSON.stringify([{ op: "add", path: "/metadata/annotations", value: { "service.beta.openshift.io/serving-cert-secret-name": "sandbox-relay-tls" } }]) },
        { target: { kind: "Service", name: names.relayAttach }, patch: dump({ $patch: "delete", apiVersion: "v1", kind: "Service", metadata: { name: names.relayAttach } }) },
        {
          target: { kind: "Deployment", name: names.relay },
          patch: JSON.stringify([
            { op: "add", path: "/spec/template/spec/volumes/-", value: { name: "tls", secret: { secretName: "sandbox-relay-tls", defaultMode: 0o440 } } },
            { op: "add", path: "/spec/template/spec/containers/0/volumeMounts/-", value: { name: "tls", mountPath: TLS_DIR, readOnly: true } },
            { op: "add", path: "/spec/template/spec/containers/0/env/-", value: { name: "SH_RELAY_TLS_CERT_FILE", value: `${TLS_DIR}/tls.crt` } },
            { op: "add", path: "/spec/template/spec/containers/0/env/-", value: { name: "SH_RELAY_TLS_KEY_FILE", value: `${TLS_DIR}/tls.key` } },
          ]),
        },
      ],
    }),
  };
}

/** File below deploy/manifests to its text. */
export function files(): Record<string, string> {
  const r = redis(place, versions.images.redis), y = relay(place, local("relay")), m = modelEndpoint(place, local("model-endpoint")), w = podWorker(place, local("worker")), access = harnessAccess(place);
  const harness = harnessService(place, { image: local("harness"), kubectl: "/usr/local/bin/kubectl" }, modelPlan(place, "scripted"));
  const base: Record<string, string> = {
    "redis.yaml": yaml(r.deployment, r.service),
    "relay.yaml": yaml(y.deployment, y.service, y.attachNodePort),
    "sandbox-pool.yaml": yaml(sandboxPool(place, local("pool"), 3)),
    "model-endpoint.yaml": yaml(m.deployment, m.service),
    "harness.yaml": yaml(access.account, access.role, access.binding, harness),
    "network-policies.yaml": yaml(...networkPolicies(place)),
  };
  const of = (folder: string, list: Record<string, string>) => Object.entries(list).map(([f, text]) => [`${folder}/${f}`, text]);
  return Object.fromEntries([
    ...of("base", { ...base, "kustomization.yaml": kustomization({ resources: Object.keys(base) }) }),
    // The same service with the env entries of the remote transport, and a worker in the cluster to go with it.
    ...of("remote", { "harness.yaml": yaml(overlay(harness, names.harness, armEnv(place, "remote"))), "worker.yaml": yaml(w.account, w.deployment) }),
    ...of("openshift", openshift()),
    ["secrets.example.yaml", yaml(...secrets)],
  ]);
}

if (process.argv[1] && !process.env.VITEST) {
  for (const [file, text] of Object.entries(files())) {
    const full = path.join(process.env.DIALOUT_ROOT ?? process.cwd(), "deploy/manifests", file);
    mkdirSync(path.dirname(full), { recursive: true });
    writeFileSync(full, text);
  }
}
