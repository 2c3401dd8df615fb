// The cluster, through its API server and nothing else: no kubectl, no port on this machine.
import { ApiException, CoreV1Api, CustomObjectsApi, KubeConfig, VersionApi, type V1Pod, type V1Service } from "@kubernetes/client-node";
import { delay, SettingError } from "@dialout/common";
import { within } from "./bounds";
import { describe } from "./evidence";
import { KubeSockets } from "./kube-sockets";
import { PodStream } from "./pod-stream";
import { LOG_LINES, type ArmState, type ClusterPort, type ExecOutput, type PodRef, type Target } from "./ports";

const QUERY_MS = 20_000;
const EXEC_MS = 30_000;
const RESTART_MS = 90_000;
/** Too short to drain: what runs must be torn from its link. */
const ABRUPT_S = 1;

/** Throws SettingError when the text is no kubeconfig or the context is not in it; the text is never shown. */
export function loadKubeConfig(text: string, context?: string): KubeConfig {
  const config = new KubeConfig();
  try {
    config.loadFromString(text);
  } catch {
    throw new SettingError("the kubeconfig is not one: it must be the text of a kubeconfig file");
  }
  if (context !== undefined) {
    const names = config.getContexts().map((c) => c.name);
    if (!names.includes(context)) throw new SettingError(`context ${JSON.stringify(context)} is not in the kubeconfig; it has: ${names.join(", ") || "none"}`);
    config.setCurrentContext(context);
  }
  if (!config.getCurrentCluster()) throw new SettingError("the kubeconfig has no current cluster: name a context of it");
  return config;
}

export class Cluster implements ClusterPort {
  readonly server: string;
  private readonly core: CoreV1Api;
  private readonly sockets: KubeSockets;

  constructor(private readonly config: KubeConfig, private readonly namespace: string) {
    this.server = config.getCurrentCluster()!.server;
    this.core = config.makeApiClient(CoreV1Api);
    this.sockets = new KubeSockets(config);
  }

  async version(): Promise<string> {
    return (await this.ask("version", this.config.makeApiClient(VersionApi).getCode())).gitVersion;
  }

  async runningPods(selector: string): Promise<PodRef[]> {
    return (await this.podsOf(this.namespace, selector)).map(podRef);
  }

  async exec(pod: string, command: readonly string[], container?: string): Promise<ExecOutput> {
    return this.sockets.exec(this.namespace, pod, command, container, EXEC_MS);
  }

  async secret(name: string): Promise<Record<string, string> | undefined> {
    try {
      const { data } = await this.ask(`Secret ${name}`, this.core.readNamespacedSecret({ name, namespace: this.namespace }));
      return Object.fromEntries(Object.entries(data ?? {}).map(([k, v]) => [k, Buffer.from(v, "base64").toString("utf8")]));
    } catch (e) {
      if (e instanceof ApiError && e.status === 404) return undefined;
      throw e;
    }
  }

  async arm(name: string): Promise<ArmState> {
    const api = this.config.makeApiClient(CustomObjectsApi);
    const request = { group: "serving.knative.dev", version: "v1", namespace: this.namespace, plural: "services", name };
    return armState(await this.ask(`Knative Service ${name}`, api.getNamespacedCustomObject(request)));
  }

  async log(service: string): Promise<string> {
    const { namespace } = this;
    const found = await this.ask(`Service ${service}`, this.core.readNamespacedService({ name: service, namespace }));
    const pods = await this.podsOf(namespace, selectorOf(found));
    const logs = pods.map((p) => this.ask(`log of ${p.metadata!.name}`, this.core.readNamespacedPodLog({ name: p.metadata!.name!, namespace, tailLines: LOG_LINES })));
    return (await Promise.all(logs)).join("\n");
  }

  async connect(target: Target): Promise<PodStream> {
    const { namespace, service } = target;
    const found = await this.ask(`Service ${namespace}/${service}`, this.core.readNamespacedService({ name: service, namespace }));
    const selector = selectorOf(found);
    if (!selector) throw new Error(`Service ${namespace}/${service} selects no pods, so nothing can be forwarded to`);
    const pod = (await this.podsOf(namespace, selector)).find(isReady);
    if (!pod) throw new Error(`Service ${namespace}/${service} has no ready pod`);
    const { name, ports } = podRef(pod);
    return this.sockets.forward(namespace, name, targetPort(found, target.port, ports));
  }

  /** Kills the pods behind a Service of ours and resolves when others are ready. For the demonstrations; the proof only looks. */
  async restart(service: string): Promise<void> {
    const namespace = this.namespace;
    const found = await this.ask(`Service ${service}`, this.core.readNamespacedService({ name: service, namespace }));
    const selector = selectorOf(found);
    const old = new Set((await this.podsOf(namespace, selector)).map((p) => p.metadata!.uid));
    for (const p of await this.podsOf(namespace, selector)) await this.ask(`deleting ${p.metadata!.name}`, this.core.deleteNamespacedPod({ name: p.metadata!.name!, namespace, gracePeriodSeconds: ABRUPT_S }));
    const end = Date.now() + RESTART_MS;
    for (;;) {
      if ((await this.podsOf(namespace, selector)).some((p) => isReady(p) && !old.has(p.metadata!.uid))) return;
      if (Date.now() > end) throw new Error(`no new pod of ${service} was ready within ${RESTART_MS / 1000} s`);
      await delay(250);
    }
  }

  private async podsOf(namespace: string, labelSelector: string): Promise<V1Pod[]> {
    const list = await this.ask(`pods ${labelSelector}`, this.core.listNamespacedPod({ namespace, labelSelector, fieldSelector: "status.phase=Running" }));
    return list.items.filter((p) => !p.metadata?.deletionTimestamp);
  }

  private async ask<T>(what: string, answer: Promise<T>): Promise<T> {
    try {
      return await within(QUERY_MS, what, answer);
    } catch (e) {
      if (e instanceof ApiException) throw new ApiError(e.code, `${what}: ${this.server} answered ${e.code} ${statusText(e.body)}`);
      throw new Error(`${what}: ${describe(e)}`);
    }
  }
}

class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message.trim());
  }
}

function statusText(body: unknown): string {
  try {
    const parsed = typeof body === "string" ? (JSON.parse(body) as { message?: string }) : (body as { message?: string });
    return parsed?.message ?? "";
  } catch {
    return "";
  }
}

const selectorOf = (s: V1Service) => Object.entries(s.spec?.selector ?? {}).map(([k, v]) => `${k}=${v}`).join(",");
const isReady = (p: V1Pod) => p.status?.conditions?.some((c) => c.type === "Ready" && c.status === "True") ?? false;

function podRef(p: V1Pod): PodRef {
  const ports = (p.spec?.containers ?? []).flatMap((c) => c.ports ?? []).filter((o) => o.name);
  return { name: p.metadata!.name!, ready: isReady(p), ports: Object.fromEntries(ports.map((o) => [o.name!, o.containerPort])) };
}

/** The pod's port behind a Service's port. */
export function targetPort(service: V1Service, port: number, podPorts: Record<string, number>): number {
  const name = service.metadata?.name;
  const entry = service.spec?.ports?.find((p) => p.port === port);
  if (!entry) throw new Error(`Service ${name} has no port ${port}; it has ${service.spec?.ports?.map((p) => p.port).join(", ") || "none"}`);
  const target = entry.targetPort ?? port;
  const number = typeof target === "number" ? target : (podPorts[target] ?? Number(target));
  if (!Number.isInteger(number)) throw new Error(`Service ${name}: its pods have no port named ${target}`);
  return number;
}

interface Ksvc {
  spec?: { template?: { spec?: { containers?: { env?: { name: string; value?: string }[] }[] } } };
  status?: { conditions?: { type: string; status: string }[]; latestCreatedRevisionName?: string; latestReadyRevisionName?: string };
}

export function armState(object: unknown): ArmState {
  const { spec, status } = object as Ksvc;
  const entries = (spec?.template?.spec?.containers?.[0]?.env ?? []).filter((e) => e.value !== undefined);
  return {
    env: Object.fromEntries(entries.map((e) => [e.name, e.value!])),
    ready: status?.conditions?.some((c) => c.type === "Ready" && c.status === "True") ?? false,
    latestCreated: status?.latestCreatedRevisionName ?? "",
    latestReady: status?.latestReadyRevisionName ?? "",
  };
}
