import * as command from "@pulumi/command";
import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { type Cluster, inside } from "./cluster";
import { type KubeObject, toYaml } from "./kube";
import { inStages, tuneKnative } from "./knative-manifests";

export interface Ingress {
  readonly class: string;
  /** Service through which requests enter; port 80. */
  readonly namespace: string;
  readonly service: string;
}

export interface KnativeArgs {
  cluster: Cluster;
  /** Objects of the release, and of its ingress; undefined when the cluster already has Knative. */
  install?: { serving: KubeObject[]; ingress: KubeObject[] };
  ingress: Ingress;
  /** Namespace of the Services to come. */
  namespace: pulumi.Input<string>;
  /** Images that must be in the node before pods start. */
  after: pulumi.Resource[];
}

/** Knative Serving with an ingress, ready when it admits a Service. */
export class Knative extends pulumi.ComponentResource {
  readonly ingress: Ingress;
  /** What a Knative Service must wait for. */
  readonly ready: pulumi.Resource;

  constructor(name: string, args: KnativeArgs, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:cluster:Knative", name, {}, opts);
    const { cluster } = args;
    this.ingress = args.ingress;
    const group = (part: string, objs: KubeObject[], dependsOn: pulumi.Resource[]) =>
      new k8s.yaml.v2.ConfigGroup(`${name}-${part}`, { yaml: toYaml(objs), resourcePrefix: part }, inside(cluster, this, { dependsOn }));

    let parts: pulumi.Resource[] = [];
    if (args.install) {
      const tuning = { ingressClass: args.ingress.class };
      const serving = inStages(tuneKnative(args.install.serving, tuning));
      const base = group("base", serving.base, []);
      const pods = group("serving", serving.pods, [base, ...args.after]);
      parts = [group("webhooks", serving.webhooks, [pods]), group("ingress", tuneKnative(args.install.ingress, tuning), [base, ...args.after])];
    }
    this.ready = new command.local.Command(`${name}-gate`, {
      create: "node components/scripts/knative-gate.mjs",
      environment: { KUBECONFIG_TEXT: cluster.kubeconfig, KUBE_CONTEXT: cluster.context ?? "", NAMESPACE: args.namespace },
      triggers: [cluster.identity],
    }, { parent: this, dependsOn: parts, ...(cluster.owned ? { deletedWith: cluster.owned } : {}) });
    this.registerOutputs();
  }
}
