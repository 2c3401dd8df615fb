import * as command from "@pulumi/command";
import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { type Cluster } from "./cluster";
import { RandomToken } from "./random-token";

export interface KindClusterArgs {
  /** Name of the cluster, of its Docker network and, with `-control-plane`, of its node. */
  name: string;
  nodeImage: string;
}

/**
 * A kind cluster on a Docker network of its own, made and removed with the stack. One of that name which the stack does not own is
 * refused and left alone; one that an interrupted `up` of this stack left half made is made anew (components/scripts/kind-cluster.mjs).
 */
export class KindCluster extends pulumi.ComponentResource implements Cluster {
  readonly provider: k8s.Provider;
  readonly kubeconfig: pulumi.Output<string>;
  readonly node: string;
  readonly network: pulumi.Output<string>;
  readonly owned: pulumi.Resource;
  readonly identity: pulumi.Output<string>;

  constructor(name: string, args: KindClusterArgs, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:cluster:Kind", name, {}, opts);
    const owner = new RandomToken(`${name}-owner`, { bytes: 8, secret: false }, { parent: this });
    const cluster = new command.local.Command(`${name}-cluster`, {
      create: "node components/scripts/kind-cluster.mjs create",
      update: "node components/scripts/kind-cluster.mjs kubeconfig",
      delete: "node components/scripts/kind-cluster.mjs delete",
      environment: { CLUSTER_NAME: args.name, CLUSTER_OWNER: owner.value, CLUSTER_STACK: pulumi.getStack(), NODE_IMAGE: args.nodeImage },
      triggers: [args.name, args.nodeImage, owner.value],
      // stdout is the kubeconfig: kept as a secret, never shown
      logging: command.local.Logging.Stderr,
      addPreviousOutputInEnv: false,
    }, { parent: this, additionalSecretOutputs: ["stdout"], deleteBeforeReplace: true, customTimeouts: { create: "15m" } });
    this.owned = cluster;
    this.kubeconfig = pulumi.secret(cluster.stdout);
    this.identity = cluster.id;
    this.node = `${args.name}-control-plane`;
    this.network = cluster.id.apply(() => args.name);
    this.provider = new k8s.Provider(`${name}-k8s`, {
      kubeconfig: this.kubeconfig,
      clusterIdentifier: cluster.id,
      // The cluster may have been deleted by hand; what was in it is then gone as well.
      deleteUnreachable: true,
      suppressDeprecationWarnings: true,
    }, { parent: this, deletedWith: cluster });
    this.registerOutputs();
  }
}
