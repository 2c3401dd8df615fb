// The Pulumi side of the proof.
import * as pulumi from "@pulumi/pulumi";
import type { Evidence, VerdictRow } from "./evidence";
import { provider } from "./provider";

export type { Evidence, VerdictRow };

type Nested<T> = { [K in keyof T]: pulumi.Input<T[K]> };

/** What the proof is about. All of it is compared on the next `up`: the proof runs again when something changed. */
export interface ProofArgs {
  /** Text of a kubeconfig. Kept secret whatever comes in. */
  kubeconfig: pulumi.Input<string>;
  /** Context in it; needed when the kubeconfig is a user's own. */
  context?: pulumi.Input<string | undefined>;
  namespace: pulumi.Input<string>;
  /** Names of the Knative Services of the A/B and of the control. */
  arms: { pods: pulumi.Input<string>; remote: pulumi.Input<string>; miswired: pulumi.Input<string> };
  /** Requests carry `Host: <ksvc>.<namespace>.<domain>`, for example example.com. */
  domain: pulumi.Input<string>;
  /** Service through which requests enter, for example kourier-system / kourier / 80. */
  ingress: Nested<{ namespace: string; service: string; port: number }>;
  redis: Nested<{ service: string; port: number; password?: string }>;
  /** Label selector of the pool's pods, KEY=VALUE. */
  poolSelector: pulumi.Input<string>;
  /** The remote arm's selector: no running pod may match it. */
  remoteSelector: pulumi.Input<string>;
  /** Name of the worker's container on this machine, and its sandbox id. */
  worker: Nested<{ container: string; id: string }>;
  /** Default: sandbox-relay, 8444, sh-relay-token. */
  relay?: Nested<{ service: string; execPort: number; secret: string }>;
  /** Texts that only the one os-release holds; empty or left out: chosen by the proof. */
  patterns?: Nested<{ pods?: string; remote?: string }>;
  /** What is printed wherever a verdict is, and whether it is a script. */
  model: Nested<{ label: string; scripted: boolean }>;
  /** Bump it to have the proof run again with nothing else changed. */
  run: pulumi.Input<number>;
  /** Anything whose change calls for a new proof: image names, container ids, revisions. */
  triggers?: pulumi.Input<unknown>;
}

class ProofRun extends pulumi.dynamic.Resource {
  declare readonly passed: pulumi.Output<boolean>;
  declare readonly message: pulumi.Output<string>;
  declare readonly verdicts: pulumi.Output<VerdictRow[]>;
  declare readonly evidence: pulumi.Output<Evidence[]>;

  constructor(kind: "prove" | "vignettes", name: string, args: ProofArgs, opts: pulumi.CustomResourceOptions) {
    const outputs = { passed: undefined, message: undefined, verdicts: undefined, evidence: undefined, inputs: undefined };
    super(provider(kind), name, { ...args, kubeconfig: pulumi.secret(args.kubeconfig), ...outputs }, opts, "proof", kind === "prove" ? "Run" : "Vignettes");
  }
}

/** What a language host reports as "the program has said what is wrong": the update fails without further noise. */
const FAILED_AND_SAID_SO = 32;

abstract class Judged extends pulumi.ComponentResource {
  readonly passed: pulumi.Output<boolean>;
  readonly status: pulumi.Output<"passed" | "failed">;
  /** Which check failed, what was expected, what was seen, what to do next; or that all passed. */
  readonly message: pulumi.Output<string>;
  readonly evidence: pulumi.Output<Evidence[]>;
  readonly verdicts: pulumi.Output<VerdictRow[]>;

  constructor(kind: "prove" | "vignettes", type: string, name: string, args: ProofArgs, opts?: pulumi.ComponentResourceOptions) {
    super(`dialout:assertions:${type}`, name, {}, opts);
    const run = new ProofRun(kind, name, args, { parent: this });
    this.passed = run.passed;
    this.status = run.passed.apply((p) => (p ? "passed" : "failed"));
    this.message = run.message;
    this.evidence = run.evidence;
    this.verdicts = run.verdicts;
    // A provider that throws keeps no outputs, hence no evidence; and a logged error alone does not fail an update. So the
    // resource always succeeds and the program, which goes on to register the stack's outputs, ends as failed.
    pulumi.all([run.passed, run.message]).apply(([passed, message]) => {
      if (passed) return;
      process.exitCode = FAILED_AND_SAID_SO;
      return pulumi.log.error(message, run);
    });
    this.registerOutputs({ status: this.status, message: this.message });
  }
}

/**
 * Proves that tool calls of the remote arm run in our worker and those of the pods arm do not, with opposite verdicts on the
 * same request. A failed proof fails the update and keeps its evidence; the next `up` runs it again.
 */
export class Proof extends Judged {
  constructor(name: string, args: ProofArgs, opts?: pulumi.ComponentResourceOptions) {
    super("prove", "Proof", name, args, opts);
  }
}

/** The longer demonstrations, each with measured evidence: kill, timeout, redelivery, restart, caps, presence. */
export class Vignettes extends Judged {
  constructor(name: string, args: ProofArgs, opts?: pulumi.ComponentResourceOptions) {
    super("vignettes", "Vignettes", name, args, opts);
  }
}
