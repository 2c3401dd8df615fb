import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { type Cluster, inside } from "./cluster";
import { type KubeObject, toYaml } from "./kube";

/** Further manifests of the user's, put into the owned cluster as they are. */
export class Extras extends pulumi.ComponentResource {
  constructor(name: string, args: { cluster: Cluster; objects: KubeObject[]; after: pulumi.Resource[] }, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:cluster:Extras", name, {}, opts);
    if (args.objects.length) new k8s.yaml.v2.ConfigGroup(`${name}-objects`, { yaml: toYaml(args.objects), resourcePrefix: name }, inside(args.cluster, this, { dependsOn: args.after }));
    this.registerOutputs();
  }
}
