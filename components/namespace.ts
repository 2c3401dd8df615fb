import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { type Cluster, inside } from "./cluster";

/** The namespace everything of ours is in: made and removed with the stack, unless it is `default`, which every cluster has. */
export class Namespace extends pulumi.ComponentResource {
  /** What resources in the namespace wait for. */
  readonly ready: pulumi.Resource[] = [];

  constructor(name: string, args: { cluster: Cluster; namespace: string }, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:cluster:Namespace", name, {}, opts);
    if (args.namespace !== "default") {
      this.ready.push(new k8s.core.v1.Namespace(`${name}-${args.namespace}`, { metadata: { name: args.namespace } }, inside(args.cluster, this)));
    }
    this.registerOutputs();
  }
}
