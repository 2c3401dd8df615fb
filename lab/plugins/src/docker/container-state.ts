// From `docker inspect` to outputs. Pure.
import type { Props, Value } from "../provider/values";
import { formatDuration } from "./duration";

const MIB = 1024 * 1024;

export interface Inspected {
  Id: string;
  Name: string;
  Platform: string;
  State: { Running: boolean; ExitCode: number; Health?: { Status: string; Log?: { Output: string }[] | null } };
  Config: {
    Hostname: string;
    User: string;
    WorkingDir: string;
    Tty: boolean;
    Cmd: string[] | null;
    Entrypoint: string[] | null;
    StopSignal?: string;
    StopTimeout?: number;
    Healthcheck?: { Test?: string[]; Interval?: number; Timeout?: number; StartPeriod?: number; StartInterval?: number; Retries?: number };
  };
  HostConfig: {
    Init?: boolean | null;
    AutoRemove: boolean;
    ReadonlyRootfs: boolean;
    NetworkMode: string;
    RestartPolicy: { Name: string; MaximumRetryCount: number };
    CapAdd: string[] | null;
    CapDrop: string[] | null;
    SecurityOpt: string[] | null;
    ExtraHosts: string[] | null;
    Tmpfs?: Record<string, string> | null;
    Memory: number;
    MemorySwap: number;
    IpcMode: string;
    Runtime: string;
    ShmSize: number;
    LogConfig: { Type: string };
  };
  NetworkSettings: { Bridge?: string; Networks: Record<string, Network> | null };
}

interface Network {
  Gateway: string;
  IPAddress: string;
  IPPrefixLen: number;
  IPv6Gateway: string;
  GlobalIPv6Address: string;
  GlobalIPv6PrefixLen: number;
  MacAddress: string;
}

const mib = (bytes: number): number => (bytes > 0 ? Math.floor(bytes / MIB) : bytes);

/** @param mustRun what the program asks; a container that should run and does not shows as `mustRun: false`, which the next `up` mends */
export function stateOf(inspected: Inspected, mustRun: boolean): Props {
  const { Config: config, HostConfig: host, NetworkSettings: network, State: state } = inspected;
  return {
    id: inspected.Id,
    name: inspected.Name.replace(/^\//, ""),
    command: config.Cmd ?? [],
    entrypoints: config.Entrypoint ?? [],
    user: config.User,
    workingDir: config.WorkingDir,
    hostname: config.Hostname,
    hosts: (host.ExtraHosts ?? []).map((pair) => ({ host: pair.slice(0, pair.indexOf(":")), ip: pair.slice(pair.indexOf(":") + 1) })),
    networkMode: host.NetworkMode,
    // the daemon's nothing is no difference to what the program did not say
    ...(host.CapAdd?.length || host.CapDrop?.length ? { capabilities: { adds: host.CapAdd ?? [], drops: host.CapDrop ?? [] } } : {}),
    ...(config.Healthcheck ? { healthcheck: healthcheck(config.Healthcheck) } : {}),
    securityOpts: host.SecurityOpt ?? [],
    readOnly: host.ReadonlyRootfs,
    tmpfs: host.Tmpfs ?? null,
    restart: host.RestartPolicy.Name,
    maxRetryCount: host.RestartPolicy.MaximumRetryCount,
    memory: mib(host.Memory),
    memorySwap: mib(host.MemorySwap),
    init: host.Init ?? false,
    stopSignal: config.StopSignal ?? "",
    stopTimeout: config.StopTimeout ?? 0,
    rm: host.AutoRemove,
    mustRun: mustRun && state.Running,
    bridge: network.Bridge ?? "",
    // of its last end; it stays when the container is started again
    ...(state.Running ? {} : { exitCode: state.ExitCode }),
    networkDatas: Object.entries(network.Networks ?? {}).map(([name, at]) => ({
      networkName: name,
      gateway: at.Gateway,
      ipAddress: at.IPAddress,
      ipPrefixLength: at.IPPrefixLen,
      ipv6Gateway: at.IPv6Gateway,
      globalIpv6Address: at.GlobalIPv6Address,
      globalIpv6PrefixLength: at.GlobalIPv6PrefixLen,
      macAddress: at.MacAddress,
    })),
    ipcMode: host.IpcMode,
    logDriver: host.LogConfig.Type,
    platform: inspected.Platform,
    runtime: host.Runtime,
    shmSize: mib(host.ShmSize),
  };
}

function healthcheck(config: NonNullable<Inspected["Config"]["Healthcheck"]>): Value {
  return {
    tests: config.Test ?? [],
    interval: formatDuration(config.Interval ?? 0),
    timeout: formatDuration(config.Timeout ?? 0),
    startPeriod: formatDuration(config.StartPeriod ?? 0),
    startInterval: formatDuration(config.StartInterval ?? 0),
    retries: config.Retries ?? 0,
  };
}

/** The text of a log without a terminal: frames of an 8-byte header (stream, then big-endian length) and content. */
export function demultiplex(frames: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at + 8 <= frames.length; ) {
    const length = frames.readUInt32BE(at + 4);
    parts.push(frames.subarray(at + 8, at + 8 + length));
    at += 8 + length;
  }
  return Buffer.concat(parts).toString();
}
