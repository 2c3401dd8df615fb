// What the worker's container must not have, read from `docker inspect` and from inside its network namespace.
import type { Inspected } from "./ports";

const OURS = ["SANDBOX_ID", "RELAY_ADDR", "SANDBOX_TOKEN_FILE"];
/** Only present when the tunnel asks for them; neither is a secret. */
const OPTIONAL = ["RELAY_TLS", "RELAY_TLS_CA_FILE", "RELAY_TLS_SERVER_NAME", "WORKER_MAX_CONCURRENT", "SANDBOX_IMAGE", "SANDBOX_TRUST"];

const published = (ports: Record<string, unknown> | null | undefined) => Object.entries(ports ?? {}).filter(([, to]) => Array.isArray(to) && to.length > 0).map(([p]) => p);

/** What is wrong with the container of worker `id`. `secrets` are values that must be nowhere in the inspect output. */
export function trustProblems(c: Inspected, raw: string, imageEnv: readonly string[], id: string, secrets: readonly string[]): string[] {
  const problems: string[] = [];
  const ports = [...new Set([...published(c.HostConfig.PortBindings), ...published(c.NetworkSettings.Ports)])];
  if (ports.length || c.HostConfig.PublishAllPorts) problems.push(`publishes ports: ${ports.join(", ") || "all"}`);
  if (c.Mounts.length || c.HostConfig.VolumesFrom?.length) problems.push(`has ${c.Mounts.length || "foreign"} mounts`);
  for (const [what, mode] of [["network", c.HostConfig.NetworkMode], ["pid", c.HostConfig.PidMode], ["ipc", c.HostConfig.IpcMode]] as const) {
    if (mode === "host" || mode?.startsWith("container:")) problems.push(`shares the ${what} namespace (${mode})`);
  }
  if (c.HostConfig.Privileged) problems.push("is privileged");
  if (c.HostConfig.Devices?.length) problems.push(`has ${c.HostConfig.Devices.length} host devices`);
  const own = (c.Config.Env ?? []).filter((e) => !imageEnv.includes(e));
  const names = own.map((e) => e.split("=", 1)[0]!);
  const extra = names.filter((n) => !OURS.includes(n) && !OPTIONAL.includes(n));
  if (extra.length) problems.push(`has environment it should not have: ${extra.join(", ")}`);
  const missing = OURS.filter((n) => !names.includes(n));
  if (missing.length) problems.push(`lacks environment: ${missing.join(", ")}`);
  const said = own.find((e) => e.startsWith("SANDBOX_ID="))?.slice("SANDBOX_ID=".length);
  if (said !== undefined && said !== id) problems.push(`is worker ${JSON.stringify(said)}, not ${id}`);
  if (secrets.some((s) => s.length >= 8 && raw.includes(s))) problems.push("shows a token in its inspect output");
  return problems;
}

/** LISTEN, as /proc/net/tcp writes it. */
const LISTEN = "0A";

/** Addresses (as /proc writes them) that listen for more than the loopback, out of /proc/net/tcp and tcp6. */
export function openListeners(procNet: string): string[] {
  const found: string[] = [];
  for (const line of procNet.split("\n")) {
    const [, local, , state] = line.trim().split(/\s+/);
    const m = /^([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})$/i.exec(local ?? "");
    if (m && state === LISTEN && !isLoopback(m[1]!.toUpperCase())) found.push(`${m[1]}:${parseInt(m[2]!, 16)}`);
  }
  return found;
}

/** Words are in the byte order of the machine: little-endian everywhere we run, so 127.x.y.z ends with 7F. */
function isLoopback(hex: string): boolean {
  if (hex.length === 8) return hex.endsWith("7F");
  return hex === "00000000000000000000000001000000" || (hex.startsWith("0000000000000000FFFF0000") && hex.endsWith("7F"));
}
