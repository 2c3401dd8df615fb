import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { type Cluster, inside } from "./cluster";
import { names, type Place } from "./manifests/common";
import { type ModelPlan } from "./manifests/model";
import { RandomToken } from "./random-token";

export interface SecretsArgs {
  cluster: Cluster;
  place: Place;
  model: ModelPlan;
  /** The user's key for the model, if there is one. */
  modelApiKey?: pulumi.Output<string>;
  after: pulumi.Resource[];
}

/** The two tokens of the relay, made once and kept as secrets in the state, and the credentials of the model; in the cluster as Secrets. */
export class Secrets extends pulumi.ComponentResource {
  /** What a worker shows when it attaches. */
  readonly workerToken: pulumi.Output<string>;
  /** Done when pods can refer to the Secrets. */
  readonly ready: pulumi.Resource[];

  constructor(name: string, args: SecretsArgs, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:relay:Secrets", name, {}, opts);
    const { cluster, place, model } = args;
    const worker = new RandomToken("worker-token", {}, { parent: this });
    // Another one: whoever may attach a worker must not be able to run commands in the others.
    const exec = new RandomToken("exec-token", {}, { parent: this });
    this.workerToken = worker.value;
    const secret = (secretName: string, stringData: Record<string, pulumi.Input<string>>) =>
      new k8s.core.v1.Secret(secretName, { metadata: { name: secretName, namespace: place.namespace }, type: "Opaque", stringData }, inside(cluster, this, { dependsOn: args.after }));
    this.ready = [
      secret(names.relaySecret, { SH_RELAY_TOKEN: worker.value, SH_RELAY_EXEC_TOKEN: exec.value }),
      secret(names.modelSecret, { ...model.secret, "api-key": args.modelApiKey ?? model.secret["api-key"] ?? "" }),
    ];
    this.registerOutputs();
  }
}
