import { z } from "zod";
import { versions } from "./versions";

const NAME = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/;
const SANDBOX_ID = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const IMAGE = /^[a-z0-9][a-zA-Z0-9._/:@-]*$/;

const name = z.string().regex(NAME, "1 to 32 of a-z 0-9 -, starting and ending with a letter or digit");
const image = (pinned: string) => z.union([z.literal("").transform(() => pinned), z.string().regex(IMAGE, "an image reference such as registry/name:tag")]);
const optional = (rule: z.ZodType<string>) => z.union([z.literal("").transform(() => undefined), rule]);
const list = z.array(z.string().min(1));
const int = (min: number, max: number) => z.coerce.number(`a whole number from ${min} to ${max}`).int(`a whole number from ${min} to ${max}`).min(min, `a whole number from ${min} to ${max}`).max(max, `a whole number from ${min} to ${max}`);
const flag = z.union([z.boolean(), z.string().regex(/^(true|false)$/, "true or false").transform((v) => v === "true")]);
const oneOf = <T extends string>(...values: T[]) => z.enum(values as [T, ...T[]], `one of ${values.join(", ")}`);
const hostPort = z.string().refine((v) => /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):\d{1,5}$/.test(v) && portOf(v) > 0 && portOf(v) < 65536, "HOST:PORT");
const portOf = (v: string) => Number(v.slice(v.lastIndexOf(":") + 1));
const httpUrl = z.string().refine((v) => /^https?:\/\/[^\s/]+/.test(v) && URL.canParse(v), "an http:// or https:// URL");
const pattern = z.string().max(200, "at most 200 characters").regex(/^[^\n]*$/, "one line");

/** The stack's settings, one rule a key. Keys, defaults and descriptions for users are in Pulumi.yaml; a test keeps the two equal. */
export const schema = z.strictObject({
  clusterMode: oneOf("owned", "existing").default("owned"),
  clusterName: name.default("dialout"),
  kubeconfig: optional(z.string()).prefault(""),
  kubeContext: optional(z.string()).prefault(""),
  namespace: z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "a Kubernetes namespace name").default("default"),
  knative: oneOf("auto", "install", "present").default("auto"),
  knativeManifests: list.default([]),
  ingressManifests: list.default([]),
  ingressClass: optional(z.string().regex(/^[a-z0-9.-]+$/, "an ingress class such as kourier.ingress.networking.knative.dev")).prefault(""),
  ingressService: optional(z.string().regex(/^[a-z0-9-]+\/[a-z0-9-]+$/, "NAMESPACE/NAME")).prefault(""),
  extraManifests: list.default([]),
  transport: oneOf("pods", "remote").default("pods"),
  tunnel: oneOf("auto", "network", "address").default("auto"),
  relayAddress: optional(hostPort).prefault(""),
  relayTls: flag.default(true),
  relayCaFile: optional(z.string()).prefault(""),
  attachTls: flag.default(false),
  model: oneOf("scripted", "anthropic", "openai-compatible", "ollama").default("scripted"),
  modelName: optional(z.string().regex(/^\S+$/, "a model name without spaces")).prefault(""),
  modelBaseUrl: optional(httpUrl).prefault(""),
  podsPattern: optional(pattern).prefault(""),
  remotePattern: optional(pattern).prefault(""),
  vignettes: flag.default(false),
  workerId: z.string().regex(SANDBOX_ID, "1 to 63 characters of A-Z a-z 0-9 . _ -, starting and ending with a letter or digit").default("sbx-laptop-demo"),
  workerContainer: z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,62}$/, "a container name").default("dialout-worker"),
  workerCapacity: int(1, 64).default(4),
  poolReplicas: int(1, 20).default(2),
  nodeImage: image(versions.kindNode).default(versions.kindNode),
  runtimeImage: image(versions.images.runtime).default(versions.images.runtime),
  poolImage: image(versions.images.pool).default(versions.images.pool),
  workerImage: image(versions.images.worker).default(versions.images.worker),
  kubectlImage: image(versions.images.kubectl).default(versions.images.kubectl),
  redisImage: image(versions.images.redis).default(versions.images.redis),
  imageSource: oneOf("registry", "local").default("registry"),
  imageLoadCommand: optional(z.string().regex(/^[^\n]{1,500}$/, "one line, a command that takes image references")).prefault(""),
  preloadImages: z.array(z.string().regex(IMAGE, "image references such as registry/name:tag")).default([]),
});

type Parsed = z.output<typeof schema>;
export interface Settings extends Omit<Parsed, "tunnel" | "knative"> {
  readonly tunnel: "network" | "address";
  readonly installKnative: boolean;
}

export class SettingProblem extends Error {}

const lists = new Set<string>(["knativeManifests", "ingressManifests", "extraManifests", "preloadImages"]);
/** Secret keys: taken from Pulumi's config as outputs, so that no message here can ever show them. */
const secretKeys = new Set(["modelApiKey"]);
const shown = (v: unknown) => JSON.stringify(typeof v === "string" && v.length > 60 ? `${v.slice(0, 57)}...` : v);

/**
 * `raw` is Pulumi's config of this project: key (without `dialout:`) to text; lists are JSON. `hasApiKey` says whether the secret is
 * set. Throws a SettingProblem whose message names key, value, rule and the command that sets it.
 */
export function parseSettings(raw: Readonly<Record<string, string>>, hasApiKey: boolean): Settings {
  const input: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(raw)) {
    if (secretKeys.has(key)) continue;
    if (!(key in schema.shape)) throw new SettingProblem(`dialout:${key} is not a setting. Remove it: pulumi config rm dialout:${key}. The settings there are: ${Object.keys(schema.shape).join(", ")}`);
    input[key] = lists.has(key) ? parseList(key, value) : value;
  }
  const result = schema.safeParse(input);
  if (!result.success) {
    const issue = result.error.issues[0]!;
    const key = String(issue.path[0]);
    throw new SettingProblem(`dialout:${key} is ${shown(input[key])}, but must be ${rule(issue)}. Set it: pulumi config set dialout:${key} ${example(key)}`);
  }
  return crossCheck(result.data, hasApiKey);
}

function parseList(key: string, text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value) && value.every((v) => typeof v === "string" && v !== "")) return value;
  } catch {
    // the one message below
  }
  throw new SettingProblem(`dialout:${key} is ${shown(text)}, but must be a list of texts. Set it: pulumi config set --path 'dialout:${key}[0]' VALUE`);
}

function rule(issue: z.core.$ZodIssue): string {
  // Of a union (empty, or the rule) the last branch is the rule.
  if (issue.code === "invalid_union") {
    const inner = issue.errors.at(-1)?.[0];
    if (inner) return rule(inner);
  }
  return issue.message;
}

function example(key: string): string {
  const value = schema.parse({})[key as keyof Parsed];
  return value === undefined || Array.isArray(value) ? "VALUE" : String(value);
}

function crossCheck(s: Parsed, hasApiKey: boolean): Settings {
  const need = (ok: unknown, message: string) => {
    if (!ok) throw new SettingProblem(message);
  };
  const owned = s.clusterMode === "owned";
  if (!owned) {
    need(s.kubeconfig, "dialout:kubeconfig is not set, but clusterMode is existing. Set it: pulumi config set dialout:kubeconfig PATH");
    need(s.kubeContext, "dialout:kubeContext is not set, but clusterMode is existing; the current context is never taken. Set it: pulumi config set dialout:kubeContext NAME");
    need(s.namespace !== "default", 'dialout:namespace is "default", but an existing cluster needs one that the stack can create and remove. Set it: pulumi config set dialout:namespace dialout');
  }
  const tunnel = s.tunnel === "auto" ? (owned ? "network" : "address") : s.tunnel;
  need(tunnel !== "network" || owned, 'dialout:tunnel is "network", which needs an owned cluster. Set it: pulumi config set dialout:tunnel address');
  need(tunnel !== "address" || s.relayAddress, "dialout:relayAddress is not set, but the tunnel is address. Set it: pulumi config set dialout:relayAddress HOST:PORT");
  need(!s.relayCaFile || (tunnel === "address" && s.relayTls), "dialout:relayCaFile is set, but it is only used for TLS to a published relay (tunnel address, relayTls true). Remove it: pulumi config rm dialout:relayCaFile");
  need(!s.attachTls || tunnel === "network" || s.relayTls, "dialout:attachTls is true, but relayTls false has the worker dial the published relay in plaintext. Set it: pulumi config set dialout:relayTls true");
  const custom = [s.ingressManifests.length > 0, s.ingressClass !== undefined, s.ingressService !== undefined];
  need(!custom[0] || (custom[1] && custom[2]), "dialout:ingressManifests is set, so ingressClass and ingressService must be too. Set them: pulumi config set dialout:ingressClass CLASS; pulumi config set dialout:ingressService NAMESPACE/NAME");
  if (s.model === "anthropic") need(hasApiKey, 'dialout:modelApiKey is not set, but the model is "anthropic". Set it: pulumi config set --secret dialout:modelApiKey KEY');
  if (s.model === "openai-compatible" || s.model === "ollama") need(s.modelBaseUrl, `dialout:modelBaseUrl is not set, but the model is "${s.model}". Set it: pulumi config set dialout:modelBaseUrl URL`);
  if (s.model === "openai-compatible" || s.model === "ollama") need(s.modelName, `dialout:modelName is not set, but the model is "${s.model}". Set it: pulumi config set dialout:modelName NAME`);
  need(owned || s.imageLoadCommand, 'dialout:imageLoadCommand is not set, but clusterMode is existing: the stack builds its images in the local Docker engine, and your cluster must get them from there. Set it: pulumi config set dialout:imageLoadCommand "kind load docker-image --name NAME" (or "minikube image load", "k3d image import -c NAME", a script of yours)');
  need(!owned || !s.imageLoadCommand, "dialout:imageLoadCommand is set, but an owned cluster gets its images by itself. Remove it: pulumi config rm dialout:imageLoadCommand");
  need(owned || !s.extraManifests.length, "dialout:extraManifests is set, but what is in an existing cluster is not the stack's. Remove it: pulumi config rm dialout:extraManifests");
  const { knative, ...rest } = s;
  return { ...rest, tunnel, installKnative: knative === "auto" ? owned : knative === "install" };
}
