import * as pulumi from "@pulumi/pulumi";
import { type Cluster } from "./cluster";
import { names, type Place, ports } from "./manifests/common";
import { redis } from "./manifests/redis";
import { place } from "./objects";

/** Redis: session logs, leases, presence. Ready when it answers a ping. */
export class Redis extends pulumi.ComponentResource {
  readonly ready: pulumi.Resource[];
  readonly service = names.redis;
  readonly port = ports.redis;

  constructor(name: string, args: { cluster: Cluster; place: Place; image: string; after: pulumi.Resource[] }, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:redis:Redis", name, {}, opts);
    const objects = redis(args.place, args.image);
    const deployment = place(args.cluster, this, objects.deployment, { dependsOn: args.after });
    this.ready = [deployment, place(args.cluster, this, objects.service, { name: `${names.redis}-service`, dependsOn: [deployment] })];
    this.registerOutputs();
  }
}
