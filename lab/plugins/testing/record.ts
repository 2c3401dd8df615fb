// Puts a plugin through a scenario and writes down everything that two plugins must agree on.
import { execSync } from "node:child_process";
import type { Fields } from "../src/provider/schema";
import { isEmpty, type Props, type Value } from "../src/provider/values";
import { Provider, type Difference, type Failed } from "./provider";
import { docker } from "./programs";
import type { Scenario } from "./scenarios";

export interface Step {
  failed?: string;
  made?: boolean;
  /** Defaults that Check filled in. */
  inputs?: Props;
  preview?: Props;
  outputs?: Props;
  inspected?: Value;
  inside?: string;
  logged?: string[];
  noop?: Difference;
  refreshed?: Props | "gone";
  afterRefresh?: Difference;
  change?: Difference;
}

/** @param fields the properties to compare; the genuine plugins have more */
export async function record(provider: Provider, scenario: Scenario, fields: Fields): Promise<Step[]> {
  const { type, name } = scenario;
  const served = [...Object.keys(fields), ...(type.startsWith("command:") ? ["stdout", "stderr"] : [])];
  const only = (props: Props): Props => normalised(Object.fromEntries(served.map((key) => [key, props[key] ?? null]))) as Props;
  for (const line of scenario.before ?? []) execSync(line, { stdio: "pipe" });
  const steps: Step[] = [];
  let id = "";
  let state: Props = {};
  let inputs: Props = {};

  // Elements of a set have no fixed place, so which of them counts as changed and which as new is a matter of taste.
  const difference = async (news: Props, olds = state): Promise<Difference> => {
    const found = await provider.diff(type, name, id, olds, inputs, news);
    const inSet = (key: string): boolean => fields[key]?.type === "set";
    const kinds = Object.entries(found.kinds).map(([key, list]) => [key, inSet(key) ? [list.some((kind) => kind.endsWith("_REPLACE")) ? "changed, replace" : "changed"] : list] as const);
    if (!type.includes("remoteImage")) return { ...found, kinds: Object.fromEntries(kinds) };
    // When an image changes the genuine plugin also names parts of `build` that did not, or its own bookkeeping.
    if (found.replaces.length) return { ...found, replaces: ["something"], kinds: {} };
    return { ...found, kinds: Object.fromEntries(kinds.filter(([key]) => key !== "build" || kinds.length === 1)) };
  };
  const make = async (wanted: Props, step: Step): Promise<boolean> => {
    step.preview = only((await provider.create(type, name, wanted, { preview: true })).outputs);
    try {
      ({ id, outputs: state } = await provider.create(type, name, wanted));
    } catch (error) {
      const failed = error as Error & Failed;
      step.failed = failed.message;
      step.made = failed.id !== undefined;
      // somebody has to clear up what the failure left, as Pulumi would
      if (failed.id) await provider.delete(type, name, failed.id, {}, wanted);
      return false;
    }
    return true;
  };

  for (const [i, news] of scenario.inputs.entries()) {
    const step: Step = {};
    steps.push(step);
    const given = Object.fromEntries(Object.entries(news).filter(([, value]) => value !== null));
    const checked = await provider.check(type, name, inputs, given);
    if (checked.failures.length) throw new Error(`${scenario.title}: ${checked.failures.join("; ")}`);
    step.inputs = normalised(checked.inputs) as Props;
    provider.logged.length = 0;
    if (i === 0) {
      if (!(await make(checked.inputs, step))) return steps;
    } else {
      step.change = await difference(checked.inputs);
      if (step.change.replaces.length) {
        if (step.change.deleteBeforeReplace) await provider.delete(type, name, id, state, inputs);
        const old = { id, state };
        if (!(await make(checked.inputs, step))) return steps;
        if (!step.change.deleteBeforeReplace) await provider.delete(type, name, old.id, old.state, inputs);
      } else if (Object.keys(step.change.kinds).length) {
        step.preview = only(await provider.update(type, name, id, state, inputs, checked.inputs, true));
        state = await provider.update(type, name, id, state, inputs, checked.inputs);
      }
    }
    inputs = checked.inputs;
    step.outputs = only(state);
    step.logged = type.startsWith("command:") ? [...provider.logged].sort() : undefined;
    step.noop = await difference(inputs);
    step.inspected = inspected(type, id, state);
    if (scenario.inside && i === 0) step.inside = docker("exec", id, ...scenario.inside);
    if (i === 0) for (const line of scenario.byHand ?? []) execSync(line, { stdio: "pipe" });
    const found = await provider.read(type, name, id, state, inputs);
    step.refreshed = found ? only(found.outputs) : "gone";
    if (found) {
      step.afterRefresh = await difference(inputs, found.outputs);
      // the next step starts from what a refresh found only where somebody has meddled
      if (scenario.byHand && i === 0) state = found.outputs;
    }
  }
  await provider.delete(type, name, id, state, inputs);
  await provider.delete(type, name, id, state, inputs);
  steps.push({ inspected: inspected(type, id, state) });
  return steps;
}

function inspected(type: string, id: string, state: Props): Value {
  const what = type.includes("container") ? ["container", id] : type.includes("network") ? ["network", id] : type.includes("remoteImage") ? ["image", String(state.name)] : type.includes("tag") ? ["image", String(state.targetImage)] : undefined;
  if (!what) return null;
  try {
    const [found] = JSON.parse(docker("inspect", "--type", ...what)) as Props[];
    return relevant(what[0] ?? "", found ?? {});
  } catch {
    return "gone";
  }
}

function relevant(kind: string, found: Props): Value {
  const pick = (keys: string[]): Value => normalised(Object.fromEntries(keys.map((key) => [key, found[key] ?? null])));
  if (kind === "network") return pick(["Name", "Scope", "Driver", "EnableIPv6", "IPAM", "Internal", "Attachable", "Ingress", "Options", "Labels"]);
  if (kind === "image") return pick(["RepoTags", "Config", "Architecture", "Os"]);
  const networks = Object.fromEntries(Object.entries((found.NetworkSettings as Props).Networks as Props).map(([name, at]) => [name, { Aliases: (at as Props).Aliases ?? null }]));
  return { ...(pick(["Name", "Path", "Args", "Config", "HostConfig"]) as Props), Running: (found.State as Props).Running ?? null, networks: normalised(networks) };
}

// Of these, order means nothing to Docker.
const UNORDERED = new Set(["Env", "envs", "labels", "hosts", "uploads", "securityOpts", "SecurityOpt", "adds", "drops", "CapAdd", "CapDrop", "aliases", "Aliases", "networkDatas", "networksAdvanced", "RepoTags", "ExtraHosts", "__defaults"]);

/** Without what differs from run to run: ids, addresses, invented names. Empty and missing are one. */
function normalised(value: Value, key = ""): Value {
  if (isEmpty(value)) return null;
  // Docker reads a container's two streams side by side: which of them comes first is chance.
  if (key === "containerLogs" && typeof value === "string") return value.split("\n").sort().join("\n");
  if (typeof value === "string") {
    return value
      .replace(/[0-9a-f]{64}/g, "<id>")
      .replace(/\b[0-9a-f]{12}\b/g, "<short id>")
      .replace(/\bplugtry-c-[0-9a-f]{7}\b/g, "<invented name>")
      .replace(/([0-9a-f]{2}:){5}[0-9a-f]{2}/g, "<mac>")
      .replace(/\b(?!172\.30\.250\.)(172\.(1[6-9]|2\d|3[01])|192\.168)\.\d+\.\d+(\/\d+)?/g, "<address>");
  }
  if (Array.isArray(value)) {
    const inner = value.map((one) => normalised(one));
    return UNORDERED.has(key) ? inner.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : inner;
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([inner, one]) => [inner, normalised(one, inner)] as const).filter(([, one]) => one !== null);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
