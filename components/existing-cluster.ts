import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { load } from "js-yaml";
import { type Cluster } from "./cluster";
import { refuse } from "./errors";

interface Kubeconfig {
  contexts?: { name?: string }[];
}

/** The text of a kubeconfig that has `context`, or an error that says which file and which contexts there are. */
export function readKubeconfig(file: string, context: string): string {
  const full = file.replace(/^~(?=\/)/, homedir());
  if (!existsSync(full)) throw refuse("setting", `dialout:kubeconfig is "${file}", but there is no such file. Set it: pulumi config set dialout:kubeconfig PATH`);
  const text = readFileSync(full, "utf8");
  let config: Kubeconfig | undefined;
  try {
    config = load(text) as Kubeconfig | undefined;
  } catch {
    // the message must not show any of the file
  }
  const names = (config?.contexts ?? []).flatMap((c) => (c.name ? [c.name] : []));
  if (!names.length) throw refuse("setting", `dialout:kubeconfig is "${file}", which is not a kubeconfig with contexts. Set it: pulumi config set dialout:kubeconfig PATH`);
  if (!names.includes(context)) throw refuse("setting", `dialout:kubeContext is "${context}", but ${file} has ${names.join(", ")}. Set it: pulumi config set dialout:kubeContext NAME`);
  return text;
}

/** A cluster of the user's: named by file and context, entered only through the stack's own namespace, never deleted. */
export class ExistingCluster extends pulumi.ComponentResource implements Cluster {
  readonly provider: k8s.Provider;
  readonly kubeconfig: pulumi.Output<string>;
  readonly context: string;
  readonly identity: pulumi.Output<string>;

  constructor(name: string, args: { kubeconfig: string; context: string }, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:cluster:Existing", name, {}, opts);
    this.kubeconfig = pulumi.secret(readKubeconfig(args.kubeconfig, args.context));
    this.context = args.context;
    this.identity = pulumi.output(args.context);
    this.provider = new k8s.Provider(`${name}-k8s`, { kubeconfig: this.kubeconfig, context: args.context, suppressDeprecationWarnings: true }, { parent: this });
    this.registerOutputs();
  }
}
