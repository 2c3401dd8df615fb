import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";

/** Where everything in-cluster goes. */
export interface Cluster {
  readonly provider: k8s.Provider;
  /** The cluster's kubeconfig (text); a secret. */
  readonly kubeconfig: pulumi.Output<string>;
  /** Context inside that kubeconfig; undefined: its current one (an owned cluster has just one). */
  readonly context?: string;
  /** The container of the owned cluster's node; undefined in a cluster that is not ours. */
  readonly node?: string;
  /** Docker network of the owned cluster; it has the cluster's name. */
  readonly network?: pulumi.Output<string>;
  /** With it everything inside is gone too, so it is not deleted piece by piece. Undefined for a cluster that is not ours. */
  readonly owned?: pulumi.Resource;
  /** Changes when the cluster is made anew. */
  readonly identity: pulumi.Output<string>;
}

/** Options of a resource inside the cluster. */
export function inside(cluster: Cluster, parent: pulumi.Resource, more: pulumi.CustomResourceOptions = {}): pulumi.CustomResourceOptions {
  return { parent, provider: cluster.provider, ...(cluster.owned ? { deletedWith: cluster.owned } : {}), ...more };
}
