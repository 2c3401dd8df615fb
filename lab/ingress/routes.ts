// What a Knative Ingress (networking.internal.knative.dev/v1alpha1) says about where requests go. Pure.

export const GROUP_PATH = "/apis/networking.internal.knative.dev/v1alpha1";
export const CLASS_ANNOTATION = "networking.knative.dev/ingress.class";

export interface Split {
  serviceName: string;
  serviceNamespace: string;
  servicePort: number | string;
  /** Of 100; a single split may leave it out. */
  percent?: number;
  appendHeaders?: Record<string, string>;
}
export interface Path {
  /** A prefix; absent or empty matches every path. */
  path?: string;
  headers?: Record<string, { exact: string }>;
  splits: Split[];
  appendHeaders?: Record<string, string>;
  rewriteHost?: string;
}
export interface KIngress {
  metadata: { name: string; namespace: string; generation: number; resourceVersion?: string; annotations?: Record<string, string>; deletionTimestamp?: string };
  spec: { rules?: { hosts: string[]; http?: { paths: Path[] } }[] };
  status?: { observedGeneration?: number; conditions?: { type: string; status: string }[] };
}
export interface Target {
  service: string;
  namespace: string;
  port: number;
  headers: Record<string, string>;
  host?: string;
}
/** Host name (lower case, no port) to its paths, most specific first. */
export type Table = Map<string, Path[]>;

export const keyOf = (i: KIngress): string => `${i.metadata.namespace}/${i.metadata.name}`;
export const isOurs = (i: KIngress, ingressClass: string): boolean => i.metadata.annotations?.[CLASS_ANNOTATION] === ingressClass && !i.metadata.deletionTimestamp;

/** One table of all ingresses. Hosts of different rules are merged; a later ingress does not take a host from an earlier one, it adds paths. */
export function buildTable(ingresses: Iterable<KIngress>): Table {
  const table: Table = new Map();
  for (const ingress of ingresses) {
    for (const rule of ingress.spec.rules ?? []) {
      for (const host of rule.hosts) {
        const name = host.toLowerCase();
        table.set(name, [...(table.get(name) ?? []), ...(rule.http?.paths ?? [])].sort(bySpecificity));
      }
    }
  }
  return table;
}

/** Knative's order: a path with more header conditions goes first, then the longer prefix. */
function bySpecificity(a: Path, b: Path): number {
  return Object.keys(b.headers ?? {}).length - Object.keys(a.headers ?? {}).length || (b.path ?? "").length - (a.path ?? "").length;
}

export function hostWithoutPort(host: string | undefined): string {
  return (host ?? "").toLowerCase().replace(/:\d+$/, "");
}

/**
 * Where a request goes; undefined when no rule matches.
 * @param header value of a request header by lower-case name
 * @param random in [0, 1): picks among splits by their percent
 */
export function route(table: Table, host: string | undefined, url: string, header: (name: string) => string | undefined, random: number): Target | undefined {
  const pathname = url.split("?", 1)[0] ?? "/";
  const path = table.get(hostWithoutPort(host))?.find((p) => pathname.startsWith(p.path ?? "") && headersMatch(p, header));
  const split = path && pickSplit(path.splits, random);
  if (!path || !split) return undefined;
  return {
    service: split.serviceName,
    namespace: split.serviceNamespace,
    port: Number(split.servicePort),
    headers: { ...path.appendHeaders, ...split.appendHeaders },
    ...(path.rewriteHost ? { host: path.rewriteHost } : {}),
  };
}

function headersMatch(path: Path, header: (name: string) => string | undefined): boolean {
  return Object.entries(path.headers ?? {}).every(([name, match]) => header(name.toLowerCase()) === match.exact);
}

function pickSplit(splits: readonly Split[], random: number): Split | undefined {
  if (splits.length === 1) return splits[0];
  let rest = random * 100;
  for (const split of splits) {
    rest -= split.percent ?? 0;
    if (rest < 0) return split;
  }
  return undefined;
}

export function isReady(i: KIngress): boolean {
  return i.status?.observedGeneration === i.metadata.generation && !!i.status.conditions?.some((c) => c.type === "Ready" && c.status === "True");
}

/** The status Knative waits for: routes of this generation are in place. `domain` is the service that in-cluster callers are sent to. */
export function readyStatus(i: KIngress, domain: string, now: string) {
  const balancer = { ingress: [{ domainInternal: domain }] };
  return {
    observedGeneration: i.metadata.generation,
    conditions: ["LoadBalancerReady", "NetworkConfigured", "Ready"].map((type) => ({ type, status: "True", lastTransitionTime: now })),
    publicLoadBalancer: balancer,
    privateLoadBalancer: balancer,
  };
}
