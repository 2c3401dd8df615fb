import * as pulumi from "@pulumi/pulumi";
import { type Cluster } from "./cluster";
import { names, type Place } from "./manifests/common";
import { modelEndpoint } from "./manifests/model-endpoint";
import { type ModelPlan } from "./manifests/model";
import { place } from "./objects";

/** The scripted model in the cluster; nothing at all when a real one is used. */
export class ModelEndpoint extends pulumi.ComponentResource {
  readonly ready: pulumi.Resource[] = [];

  constructor(name: string, args: { cluster: Cluster; place: Place; model: ModelPlan; image: string; after: pulumi.Resource[] }, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:model:Endpoint", name, {}, opts);
    if (args.model.kind === "scripted") {
      const objects = modelEndpoint(args.place, args.image);
      const deployment = place(args.cluster, this, objects.deployment, { dependsOn: args.after });
      this.ready = [deployment, place(args.cluster, this, objects.service, { name: `${names.model}-service`, dependsOn: [deployment] })];
    }
    this.registerOutputs();
  }
}
