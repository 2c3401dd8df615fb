import * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import { type Tunnel } from "./tunnel";

export interface HostWorkerArgs {
  container: string;
  /** Sandbox id. */
  id: string;
  /** Id of its image in the local engine. */
  image: pulumi.Input<string>;
  /** Commands at once. */
  capacity: number;
  token: pulumi.Output<string>;
  tunnel: Tunnel;
  /** PEM of the authority to verify the relay by; undefined: the system's. */
  ca?: pulumi.Input<string>;
  /** Docker network to join; undefined: the default one. */
  network?: pulumi.Input<string>;
  /** The relay: a worker that starts before it only waits. */
  after: pulumi.Resource[];
}

const TOKEN_FILE = "/run/dialout/token";
const CA_FILE = "/run/dialout/relay-ca.pem";
const DEFAULT_CAPACITY = 4;

/**
 * The worker: a container on this machine that dials out. No published port, no mount, no credential in its environment: the token
 * is a file that only root can read, and commands run as another user. Of root's capabilities it keeps those that take to switch to
 * that user and to kill what it runs.
 */
export class HostWorker extends pulumi.ComponentResource {
  /** Id of the container. */
  readonly containerId: pulumi.Output<string>;
  readonly ready: pulumi.Resource[];

  constructor(name: string, args: HostWorkerArgs, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:worker:HostWorker", name, {}, opts);
    const { tunnel } = args;
    const container = new docker.Container("worker", {
      name: args.container,
      image: args.image,
      envs: [
        `SANDBOX_ID=${args.id}`,
        `RELAY_ADDR=${tunnel.address}`,
        `SANDBOX_TOKEN_FILE=${TOKEN_FILE}`,
        ...(tunnel.tls ? ["RELAY_TLS=1"] : []),
        ...(args.ca ? [`RELAY_TLS_CA_FILE=${CA_FILE}`] : []),
        ...(args.capacity === DEFAULT_CAPACITY ? [] : [`WORKER_MAX_CONCURRENT=${args.capacity}`]),
      ],
      uploads: [{ file: TOKEN_FILE, content: args.token, permissions: "0600" }, ...(args.ca ? [{ file: CA_FILE, content: args.ca, permissions: "0644" }] : [])],
      capabilities: { drops: ["ALL"], adds: ["CAP_KILL", "CAP_SETGID", "CAP_SETUID"] },
      securityOpts: ["no-new-privileges:true"],
      ...(args.network ? { networkMode: args.network } : {}),
      labels: [{ label: "dev.dialout.stack", value: pulumi.getStack() }],
      restart: "unless-stopped",
      destroyGraceSeconds: 10,
      removeVolumes: true,
      mustRun: true,
    }, { parent: this, dependsOn: args.after, deleteBeforeReplace: true, additionalSecretOutputs: ["uploads"] });
    this.containerId = container.id;
    this.ready = [container];
    this.registerOutputs();
  }
}
