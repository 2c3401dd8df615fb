import { createHash } from "node:crypto";
import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { AttachCertificate } from "./attach-certificate";
import { type Cluster, inside } from "./cluster";
import { names, type Place } from "./manifests/common";
import { type Settings } from "./settings";

/** DNS names under which workers may dial the relay: the node, the published address, and the Service for workers inside. */
export function attachNames(settings: Pick<Settings, "relayAddress">, node: string | undefined, place: Place): string[] {
  const published = settings.relayAddress?.replace(/:\d+$/, "");
  return [...new Set([node, published, ...[names.relayAttach, names.relay].flatMap((s) => [`${s}.${place.namespace}.svc`, `${s}.${place.namespace}`])])].filter((n) => n !== undefined);
}

/** TLS for the relay's attach listener: a certificate of the stack's own authority, and the Secret it is mounted from. */
export class AttachTls extends pulumi.ComponentResource {
  /** PEM of the authority, for workers. */
  readonly ca: pulumi.Output<string>;
  /** Another one for other names: the relay reads its certificate at start, so its pod has to change with it. */
  readonly secret: string;
  readonly ready: pulumi.Resource[];

  constructor(name: string, args: { cluster: Cluster; place: Place; settings: Pick<Settings, "relayAddress">; after: pulumi.Resource[] }, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:relay:AttachTls", name, {}, opts);
    const dnsNames = attachNames(args.settings, args.cluster.node, args.place);
    const certificate = new AttachCertificate("attach-certificate", { names: dnsNames }, { parent: this });
    this.ca = certificate.ca;
    this.secret = `${names.relayTls}-${createHash("sha256").update(dnsNames.join()).digest("hex").slice(0, 8)}`;
    const stringData = { "tls.crt": certificate.certificate, "tls.key": certificate.key };
    this.ready = [new k8s.core.v1.Secret(names.relayTls, { metadata: { name: this.secret, namespace: args.place.namespace }, type: "kubernetes.io/tls", stringData }, inside(args.cluster, this, { dependsOn: args.after }))];
    this.registerOutputs();
  }
}
