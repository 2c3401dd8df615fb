import * as pulumi from "@pulumi/pulumi";
import { type Cluster } from "./cluster";
import { arms, type Arm, armEnv, overlay } from "./ksvc-overlay";
import { names, type Place } from "./manifests/common";
import { harnessAccess, harnessService, type KnativeService } from "./manifests/harness";
import { type ModelPlan } from "./manifests/model";
import { place } from "./objects";

export interface HarnessArgs {
  cluster: Cluster;
  place: Place;
  image: string;
  model: ModelPlan;
  /** Where `serverless-harness` itself sends tool calls. */
  transport: "pods" | "remote";
  /** Knative's gate, the Secrets, and what a leaf needs. */
  after: pulumi.Resource[];
}

/** Path of kubectl in the harness's image. */
const KUBECTL = "/usr/local/bin/kubectl";

/**
 * The harness as four Knative Services made from one spec: `serverless-harness`, whose transport is a setting, and the proof's arms,
 * which a flip of that setting does not touch.
 */
export class Harness extends pulumi.ComponentResource {
  readonly arms: Record<Arm, string>;
  /** Done when the arms are Ready. */
  readonly ready: pulumi.Resource[];

  constructor(name: string, args: HarnessArgs, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:harness:Harness", name, {}, opts);
    const access = Object.values(harnessAccess(args.place)).map((o) => place(args.cluster, this, o, { name: `harness-${o.kind.toLowerCase()}` }));
    const base = harnessService(args.place, { image: args.image, kubectl: KUBECTL }, args.model);
    const create = (service: KnativeService) => place(args.cluster, this, awaited(service), { dependsOn: [...access, ...args.after], customTimeouts: { create: "5m", update: "5m" } });

    create(overlay(base, names.harness, armEnv(args.place, args.transport)));
    this.ready = (Object.keys(arms) as Arm[]).map((arm) => create(overlay(base, arms[arm].service, armEnv(args.place, arm))));
    this.arms = Object.fromEntries(Object.entries(arms).map(([arm, { service }]) => [arm, service])) as Record<Arm, string>;
    this.registerOutputs();
  }
}

/** Makes Pulumi wait until the Service's newest revision serves. */
function awaited(service: KnativeService): KnativeService {
  return { ...service, metadata: { ...service.metadata, annotations: { ...service.metadata.annotations, "pulumi.com/waitFor": "condition=Ready" } } };
}
