import path from "node:path";
import * as command from "@pulumi/command";
import * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import { type Cluster } from "./cluster";
import { contentHash } from "./content-hash";
import { type Settings } from "./settings";
import { root } from "./versions";

export type ImageName = "relay" | "harness" | "model-endpoint" | "pool" | "worker";

interface Recipe {
  /** Folder with the Dockerfile, from the project's root. */
  readonly context: string;
  readonly buildArgs: Record<string, string>;
}

/** What our images are built from. */
export function recipes(s: Pick<Settings, "runtimeImage" | "kubectlImage" | "poolImage" | "workerImage">): Record<ImageName, Recipe> {
  return {
    relay: { context: "relay", buildArgs: { BASE_IMAGE: s.runtimeImage } },
    harness: { context: "harness", buildArgs: { BASE_IMAGE: s.runtimeImage, KUBECTL_IMAGE: s.kubectlImage } },
    "model-endpoint": { context: "model-endpoint", buildArgs: { BASE_IMAGE: s.runtimeImage } },
    pool: { context: "deploy/images/pool", buildArgs: { BASE_IMAGE: s.poolImage } },
    worker: { context: "remote-worker", buildArgs: { BASE_IMAGE: s.workerImage } },
  };
}

/** `dev.local` is a name that Knative does not try to resolve in a registry. */
export const reference = (name: ImageName, hash: string) => `dev.local/dialout-${name}:${hash}`;

export interface ImagesArgs {
  cluster: Cluster;
  settings: Settings;
  /** Images of the local engine that the cluster needs and cannot pull: reference to id. */
  preload: Readonly<Record<string, string>>;
}

/**
 * Our five images, built in the local Docker engine and named by their content; those that run in the cluster are handed
 * over to it. All references are known before anything is built, so previews show them.
 */
export class Images extends pulumi.ComponentResource {
  /** Reference by name. */
  readonly refs: Record<ImageName, string>;
  /** Id of the worker's image in the local engine. */
  readonly workerId: pulumi.Output<string>;
  /** Done when the images are in the cluster. */
  readonly loaded: pulumi.Resource[] = [];

  constructor(name: string, args: ImagesArgs, opts?: pulumi.ComponentResourceOptions) {
    super("dialout:images:Images", name, {}, opts);
    const { cluster } = args;
    const built = Object.entries(recipes(args.settings)).map(([image, recipe]) => this.build(image as ImageName, recipe));
    this.refs = Object.fromEntries(built.map((b) => [b.image, b.ref])) as Record<ImageName, string>;
    this.workerId = built.find((b) => b.image === "worker")!.resource.imageId;

    this.loaded.push(this.load(cluster, args.settings.imageLoadCommand, built.filter((b) => b.image !== "worker"), args.preload));
    this.registerOutputs();
  }

  private build(image: ImageName, recipe: Recipe) {
    const context = path.join(root, recipe.context);
    const ref = reference(image, contentHash(context, recipe.buildArgs));
    const resource = new docker.RemoteImage(`image-${image}`, {
      name: ref,
      // A relative path: where the checkout lies is no property of the image.
      build: { context: recipe.context, buildArgs: recipe.buildArgs, labels: { "dev.dialout.stack": pulumi.getStack() } },
      // The tag goes also while a container that is not ours still runs the image.
      forceRemove: true,
    }, { parent: this, customTimeouts: { create: "20m" } });
    return { image, ref, resource };
  }

  /** Into the node of an owned cluster, in one step: layers that several images share are then copied once. To another one by the user's own command: only they know how. */
  private load(cluster: Cluster, loadCommand: string | undefined, ours: { ref: string; resource: pulumi.Resource }[], preload: Readonly<Record<string, string>>): pulumi.Resource {
    const references = [...Object.keys(preload), ...ours.map((o) => o.ref)].sort();
    // Ours are named by their content; these may change under their name.
    const preloadIds = Object.values(preload).sort();
    const how = cluster.node
      ? { create: "node components/scripts/load-images.mjs", environment: { NODE: cluster.node, IMAGES: JSON.stringify(references), PRELOAD_IDS: JSON.stringify(preloadIds) }, triggers: [cluster.identity] }
      : { create: `${loadCommand} ${references.join(" ")}`, triggers: [cluster.identity, ...preloadIds] };
    const owned = cluster.owned && { deletedWith: cluster.owned };
    return new command.local.Command("images-load", { ...how, logging: command.local.Logging.Stderr, addPreviousOutputInEnv: false }, {
      parent: this, ...owned, dependsOn: [...(cluster.owned ? [cluster.owned] : []), ...ours.map((o) => o.resource)], customTimeouts: { create: "15m" },
    });
  }
}
