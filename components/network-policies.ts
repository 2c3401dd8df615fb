import * as pulumi from "@pulumi/pulumi";
import { type Cluster } from "./cluster";
import { type Place } from "./manifests/common";
import { type ModelPlan, portOf } from "./manifests/model";
import { networkPolicies } from "./manifests/network-policies";
import { place } from "./objects";

/** Who may talk to whom inside the cluster. */
export class NetworkPolicies extends pulumi.ComponentResource {
  constructor(name: string, args: { cluster: Cluster; place: Place; model: ModelPlan; after: pulumi.Resource[] }, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:network:Policies", name, {}, opts);
    const modelPort = args.model.kind === "scripted" ? undefined : portOf(args.model.url);
    for (const policy of networkPolicies(args.place, modelPort)) {
      place(args.cluster, this, policy, { name: `policy-${policy.metadata.name}`, dependsOn: args.after });
    }
    this.registerOutputs();
  }
}
