import * as pulumi from "@pulumi/pulumi";
import { type Cluster } from "./cluster";
import { names, type Place, ports } from "./manifests/common";
import { relay } from "./manifests/relay";
import { place } from "./objects";

export interface RelayArgs {
  cluster: Cluster;
  place: Place;
  image: string;
  /** Whether workers reach it through the node (tunnel `network`). */
  nodePort: boolean;
  /** Secret with the certificate of the attach listener; undefined: plaintext. */
  tlsSecret?: string;
  after: pulumi.Resource[];
}

/** The relay. Ready when its health endpoint says that it takes work, not when its pod runs. */
export class Relay extends pulumi.ComponentResource {
  readonly ready: pulumi.Resource[];
  readonly service = names.relay;
  readonly execPort = ports.exec;
  readonly secret = names.relaySecret;

  constructor(name: string, args: RelayArgs, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:relay:Relay", name, {}, opts);
    const objects = relay(args.place, args.image, args.tlsSecret);
    const deployment = place(args.cluster, this, objects.deployment, { dependsOn: args.after });
    const services = [place(args.cluster, this, objects.service, { name: `${names.relay}-service`, dependsOn: [deployment] })];
    if (args.nodePort) services.push(place(args.cluster, this, objects.attachNodePort, { dependsOn: [deployment] }));
    this.ready = [deployment, ...services];
    this.registerOutputs();
  }
}
