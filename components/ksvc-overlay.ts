import { inCluster, names, type Place, poolSelector, ports, remoteSelector, secretEnv } from "./manifests/common";
import { type EnvEntry, type KnativeService } from "./manifests/harness";

/** One side of the A/B; `miswired` must fail: remote flag on, but a selector that pods match, so a pod wins. */
export type Arm = "pods" | "remote" | "miswired";

export const arms: Readonly<Record<Arm, { readonly service: string }>> = {
  pods: { service: `${names.harness}-arm-pods` },
  remote: { service: `${names.harness}-arm-remote` },
  miswired: { service: `${names.harness}-arm-miswired` },
};

/** Env entries that send tool calls to a worker outside the cluster. */
export function remoteEnv(place: Place, selector = remoteSelector): EnvEntry[] {
  return [
    { name: "SH_REMOTE_SANDBOX", value: "1" },
    { name: "SH_RELAY_ADDR", value: inCluster(place, names.relay, ports.exec) },
    secretEnv("SH_RELAY_EXEC_TOKEN", names.relaySecret, "SH_RELAY_EXEC_TOKEN"),
    { name: "KAGENTI_SANDBOX_POOL_SELECTOR", value: selector },
  ];
}

/** What an arm changes of the base service. */
export function armEnv(place: Place, arm: Arm): EnvEntry[] {
  return arm === "pods" ? [] : remoteEnv(place, arm === "miswired" ? poolSelector : remoteSelector);
}

/**
 * A copy of `base` with each entry put in by name: in its place where the name is there already, at the end otherwise. Everything
 * else passes through as the very objects it was, so that secret references and volume mounts cannot get lost on the way.
 */
export function overlay(base: KnativeService, name: string, entries: readonly EnvEntry[]): KnativeService {
  const { template } = base.spec;
  const [container, ...others] = template.spec.containers;
  const changed = { ...container!, env: upsert(container!.env, entries) };
  return { ...base, metadata: { ...base.metadata, name }, spec: { ...base.spec, template: { ...template, spec: { ...template.spec, containers: [changed, ...others] } } } };
}

function upsert(env: readonly EnvEntry[], entries: readonly EnvEntry[]): EnvEntry[] {
  const given = new Map(entries.map((e) => [e.name, e]));
  const present = new Set(env.map((e) => e.name));
  return [...env.map((e) => given.get(e.name) ?? e), ...[...given.values()].filter((e) => !present.has(e.name))];
}
