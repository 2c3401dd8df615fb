import * as pulumi from "@pulumi/pulumi";
import { type Cluster } from "./cluster";
import { type Place, poolSelector } from "./manifests/common";
import { sandboxPool } from "./manifests/sandbox-pool";
import { place } from "./objects";

/** Pods for the `pods` transport. */
export class SandboxPool extends pulumi.ComponentResource {
  readonly ready: pulumi.Resource[];
  readonly selector = poolSelector;

  constructor(name: string, args: { cluster: Cluster; place: Place; image: string; replicas: number; after: pulumi.Resource[] }, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:sandbox:Pool", name, {}, opts);
    this.ready = [place(args.cluster, this, sandboxPool(args.place, args.image, args.replicas), { dependsOn: args.after })];
    this.registerOutputs();
  }
}
