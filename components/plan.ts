import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import * as pulumi from "@pulumi/pulumi";
import { type Cluster } from "./cluster";
import { refuse } from "./errors";
import { ExistingCluster } from "./existing-cluster";
import { buildPrograms, checkHost, localImageIds } from "./host";
import { KindCluster } from "./kind-cluster";
import { type Ingress } from "./knative";
import { imagesOf, type KubeObject } from "./kube";
import { readManifests } from "./manifest-source";
import { type Place } from "./manifests/common";
import { type ModelPlan, modelPlan } from "./manifests/model";
import { parseSettings, SettingProblem, type Settings } from "./settings";
import { versions } from "./versions";

/** Everything that is decided before the first resource. */
export interface Plan {
  readonly settings: Settings;
  readonly modelApiKey?: pulumi.Output<string>;
  readonly place: Place;
  readonly model: ModelPlan;
  readonly ingress: Ingress;
  /** Manifests to install Knative from; undefined when the cluster has it. */
  readonly knative?: { serving: KubeObject[]; ingress: KubeObject[] };
  readonly extras: KubeObject[];
  /** PEM of the authority of a published relay, when the user named one. */
  readonly relayCa?: string;
  /** Ids of the local images to copy into the cluster, by reference. */
  readonly preload: Record<string, string>;
}

/** Reads and checks the settings, this machine and the manifests, so that whatever is wrong is said before anything is made. */
export async function prepare(): Promise<Plan> {
  const { settings, modelApiKey } = readSettings();
  const place = { namespace: settings.namespace };
  await checkHost(settings.clusterMode === "owned");
  buildPrograms();
  const [serving, ingress, extras] = await Promise.all([
    settings.installKnative ? readManifests(or(settings.knativeManifests, versions.knative.manifests), "dialout:knativeManifests") : [],
    settings.installKnative ? readManifests(or(settings.ingressManifests, versions.kourier.manifests), "dialout:ingressManifests") : [],
    readManifests(settings.extraManifests, "dialout:extraManifests"),
  ]);
  const local = settings.imageSource === "local" ? [settings.redisImage, ...imagesOf([...serving, ...ingress, ...extras])] : [];
  const preload = await localImageIds([...new Set([...settings.preloadImages, ...local])]);
  return {
    settings, modelApiKey, place, extras, preload,
    ...(settings.relayCaFile ? { relayCa: readCa(settings.relayCaFile) } : {}),
    model: modelPlan(place, settings.model, settings.modelName, settings.modelBaseUrl),
    ingress: ingressOf(settings),
    ...(settings.installKnative ? { knative: { serving, ingress } } : {}),
  };
}

const or = (mine: readonly string[], pinned: readonly string[]) => (mine.length ? mine : pinned);

function readSettings(): { settings: Settings; modelApiKey?: pulumi.Output<string> } {
  const prefix = `${pulumi.getProject()}:`;
  const raw = Object.entries(pulumi.runtime.allConfig()).filter(([k]) => k.startsWith(prefix)).map(([k, v]) => [k.slice(prefix.length), v]);
  const modelApiKey = new pulumi.Config().getSecret("modelApiKey");
  try {
    return { settings: parseSettings(Object.fromEntries(raw), modelApiKey !== undefined), modelApiKey };
  } catch (e) {
    throw e instanceof SettingProblem ? refuse("setting", e.message) : e;
  }
}

function readCa(file: string): string {
  const problem = (why: string) => refuse("setting", `dialout:relayCaFile is ${JSON.stringify(file)}, but must be a PEM file with at least one certificate (${why}). Set it: pulumi config set dialout:relayCaFile PATH`);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (e) {
    throw problem((e as NodeJS.ErrnoException).code ?? String(e));
  }
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
  if (!certificates.length) throw problem("it has none");
  for (const pem of certificates) {
    try {
      new X509Certificate(pem);
    } catch {
      throw problem("one of them cannot be read");
    }
  }
  return text;
}

function ingressOf(s: Settings): Ingress {
  const [namespace, service] = (s.ingressService ?? versions.kourier.service).split("/") as [string, string];
  return { class: s.ingressClass ?? versions.kourier.class, namespace, service };
}

/** The cluster of these settings: one of our own, or the user's. */
export function openCluster(settings: Settings): Cluster {
  return settings.clusterMode === "owned"
    ? new KindCluster("kind", { name: settings.clusterName, nodeImage: settings.nodeImage })
    : new ExistingCluster("existing", { kubeconfig: settings.kubeconfig!, context: settings.kubeContext! });
}
