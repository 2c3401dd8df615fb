// From checked inputs to what the Engine API takes. Pure.
import { readFileSync } from "node:fs";
import { UserError } from "../provider/errors";
import type { Props, Value } from "../provider/values";
import { parseDuration } from "./duration";
import { archive } from "./tar";

const MIB = 1024 * 1024;

const list = (value: Value | undefined): string[] => (Array.isArray(value) ? value.map(String) : []);
const objects = (value: Value | undefined): Props[] => (Array.isArray(value) ? (value as Props[]) : []);
const given = <T>(value: Value | undefined, map: (value: Value) => T): T | undefined => (value === undefined || value === null ? undefined : map(value));
const mib = (value: Value): number => (Number(value) > 0 ? Number(value) * MIB : Number(value));

/** Body of POST /containers/create. */
export function createBody(inputs: Props): object {
  const capabilities = (inputs.capabilities ?? {}) as Props;
  return {
    Image: inputs.image,
    Hostname: inputs.hostname,
    User: inputs.user,
    WorkingDir: inputs.workingDir,
    Env: given(inputs.envs, list),
    Cmd: given(inputs.command, list),
    Entrypoint: given(inputs.entrypoints, list),
    Labels: given(inputs.labels, (labels) => Object.fromEntries(objects(labels).map(({ label, value }) => [String(label), value]))),
    Healthcheck: given(inputs.healthcheck, (healthcheck) => healthBody(healthcheck as Props)),
    StopSignal: inputs.stopSignal,
    StopTimeout: inputs.stopTimeout,
    HostConfig: {
      Init: inputs.init ?? false,
      AutoRemove: inputs.rm ?? false,
      ReadonlyRootfs: inputs.readOnly ?? false,
      NetworkMode: inputs.networkMode,
      RestartPolicy: restartPolicy(inputs),
      CapAdd: given(capabilities.adds, list),
      CapDrop: given(capabilities.drops, list),
      SecurityOpt: given(inputs.securityOpts, list),
      ExtraHosts: given(inputs.hosts, (hosts) => objects(hosts).map(({ host, ip }) => `${String(host)}:${String(ip)}`)),
      Tmpfs: inputs.tmpfs,
      Memory: given(inputs.memory, mib),
      MemorySwap: given(inputs.memorySwap, mib),
    },
  };
}

/** Body of POST /containers/{id}/update: the only properties that Docker changes in place. */
export function updateBody(inputs: Props): object {
  return { RestartPolicy: restartPolicy(inputs), Memory: given(inputs.memory, mib), MemorySwap: given(inputs.memorySwap, mib) };
}
export const UPDATED_IN_PLACE = ["restart", "maxRetryCount", "memory", "memorySwap"] as const;

function restartPolicy(inputs: Props): object {
  return { Name: inputs.restart, MaximumRetryCount: inputs.maxRetryCount ?? 0 };
}

function healthBody(healthcheck: Props): object {
  const nanoseconds = (key: string): number | undefined => given(healthcheck[key], (value) => parseDuration(String(value))) || undefined;
  return {
    Test: list(healthcheck.tests),
    Interval: nanoseconds("interval"),
    Timeout: nanoseconds("timeout"),
    StartPeriod: nanoseconds("startPeriod"),
    StartInterval: nanoseconds("startInterval"),
    Retries: healthcheck.retries ?? undefined,
  };
}

/** Networks to join instead of the default one. */
export function endpoints(inputs: Props): { network: string; aliases: string[] }[] {
  return objects(inputs.networksAdvanced).map(({ name, aliases }) => ({ network: String(name), aliases: list(aliases) }));
}

/** The archive of all uploads, or undefined without any. @param now seconds since 1970, their modification time */
export function uploadArchive(inputs: Props, now: number): Buffer | undefined {
  const uploads = objects(inputs.uploads);
  if (uploads.length === 0) return undefined;
  return archive(uploads.map((upload) => ({ name: String(upload.file).replace(/^\/+/, ""), mode: modeOf(upload), content: contentOf(upload) })), now);
}

function modeOf(upload: Props): number {
  if (upload.permissions) return parseInt(String(upload.permissions), 8);
  return upload.executable === true ? 0o744 : 0o644;
}

function contentOf(upload: Props): Buffer {
  const sources = ["content", "contentBase64", "source"].filter((key) => upload[key]);
  const [source] = sources;
  if (source === undefined) throw new UserError(`error with upload content of '${String(upload.file)}': one of 'content', 'contentBase64', or 'source' must be set, and not be empty`);
  if (sources.length > 1) throw new UserError(`error with upload content of '${String(upload.file)}': only one of 'content', 'contentBase64', or 'source' can be set`);
  const value = String(upload[source]);
  if (source === "content") return Buffer.from(value);
  if (source === "contentBase64") return Buffer.from(value, "base64");
  try {
    return readFileSync(value);
  } catch (error) {
    throw new UserError(`could not read the source '${value}' of upload '${String(upload.file)}': ${(error as Error).message}`);
  }
}
