import { readFileSync } from "node:fs";
import { SettingError, show, type Settings } from "@dialout/common";

/** Where leaves run their commands. `pool` leases one of many, `pod` and `name` are fixed, `local` is this very container. */
export type Placement =
  | { kind: "pool"; selector?: string }
  | { kind: "pod"; pod: string }
  | { kind: "name"; name: string }
  | { kind: "local" }
  | { kind: "none" };

export interface RelaySettings {
  addr: string;
  execToken: string;
  /** Addresses a presence record may name instead of `addr`: `HOST:PORT` or `*.SUFFIX:PORT`. */
  allow: string[];
  /** How long a command is redelivered for after a lost link. */
  graceMs: number;
  /** Missing: plaintext. */
  tls?: { ca?: string; serverName?: string };
}

export interface SandboxSettings {
  placement: Placement;
  pods: boolean;
  records: boolean;
  namespace: string;
  context?: string;
  cwd: string;
  kubectl: string;
  kubectlTimeoutMs: number;
  cap: number;
  leaseTtlMs: number;
  heartbeatMs: number;
  staleMs: number;
  /** A presence record must carry all of these. */
  labels: Record<string, string>;
  relay?: RelaySettings;
}

const NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

function resourceName(s: Settings, variable: string): string | undefined {
  const v = s.string(variable);
  if (v !== undefined && !NAME.test(v)) throw new SettingError(`${variable}=${show(v)} must be a Kubernetes name (a-z 0-9 . -). For example: ${variable}=sandbox-0`);
  return v;
}

/** kubectl takes the selector as one argument; one that starts with a dash would be read as an option. */
function selector(s: Settings): string | undefined {
  const name = "KAGENTI_SANDBOX_POOL_SELECTOR";
  const v = s.string(name);
  if (v !== undefined && !/^[A-Za-z0-9!][A-Za-z0-9 ._/=!,()-]*$/.test(v)) {
    throw new SettingError(`${name}=${show(v)} must be a label selector. For example: ${name}=sh.kagenti.io/sandbox-pool=default`);
  }
  return v;
}

function labels(s: Settings): Record<string, string> {
  const name = "SH_SANDBOX_LABELS";
  const wanted: Record<string, string> = {};
  for (const part of (s.string(name) ?? "").split(",").map((p) => p.trim()).filter(Boolean)) {
    const m = /^([A-Za-z0-9][A-Za-z0-9._/-]*)=([A-Za-z0-9._-]*)$/.exec(part);
    if (!m) throw new SettingError(`${name}=${show(part)} must be KEY=VALUE, several separated by commas. For example: ${name}=os=rhel9,gpu=none`);
    wanted[m[1]!] = m[2]!;
  }
  return wanted;
}

function relayAllow(s: Settings): string[] {
  const name = "SH_RELAY_ADDR_ALLOW";
  return (s.string(name) ?? "").split(",").map((p) => p.trim()).filter(Boolean).map((part) => {
    if (!/^(\*\.)?[A-Za-z0-9[\]:._-]+:\d{1,5}$/.test(part)) {
      throw new SettingError(`${name}=${show(part)} must be HOST:PORT or *.SUFFIX:PORT. For example: ${name}=*.sandbox-relay.default.svc.cluster.local:8444`);
    }
    return part;
  });
}

function relaySettings(s: Settings): RelaySettings {
  const execToken = s.required("SH_RELAY_EXEC_TOKEN", "SH_REMOTE_SANDBOX=1 runs commands through the relay, which asks for this token", "$(openssl rand -hex 32)");
  if (!/^[\x21-\x7e]+$/.test(execToken)) throw new SettingError("SH_RELAY_EXEC_TOKEN must be one word of printable ASCII; it holds a space, a line break or another character");
  return { addr: s.hostPort("SH_RELAY_ADDR", "sandbox-relay.default.svc.cluster.local:8444"), execToken, allow: relayAllow(s), graceMs: s.int("SH_RELAY_GRACE_MS", 30_000, { min: 0, max: 3_600_000 }), tls: relayTls(s) };
}

function relayTls(s: Settings): RelaySettings["tls"] {
  const on = s.oneOf("SH_RELAY_TLS", ["0", "1"], "0") === "1";
  const file = s.string("SH_RELAY_TLS_CA_FILE");
  if (!on && file) throw new SettingError("SH_RELAY_TLS_CA_FILE is set but TLS is off. Set SH_RELAY_TLS=1, or unset SH_RELAY_TLS_CA_FILE");
  if (!on) return undefined;
  return { ca: file === undefined ? undefined : certificate(file), serverName: s.string("SH_RELAY_TLS_SERVER_NAME") };
}

function certificate(file: string): string {
  let pem: string;
  try {
    pem = readFileSync(file, "utf8");
  } catch (e) {
    throw new SettingError(`SH_RELAY_TLS_CA_FILE=${show(file)} cannot be read (${(e as NodeJS.ErrnoException).code}). For example: SH_RELAY_TLS_CA_FILE=/etc/relay/ca.crt`);
  }
  if (!pem.includes("-----BEGIN CERTIFICATE-----")) throw new SettingError(`SH_RELAY_TLS_CA_FILE=${show(file)} holds no PEM certificate`);
  return pem;
}

export function readSandboxSettings(s: Settings, warnings: string[]): SandboxSettings {
  const flag = s.string("SH_REMOTE_SANDBOX");
  const remote = flag === "1";
  if (flag !== undefined && !remote && flag !== "0") warnings.push(`SH_REMOTE_SANDBOX=${show(flag)} is not exactly 1, so remote sandboxes stay off`);
  const discovery = s.oneOf("SH_SANDBOX_DISCOVERY", ["pods", "records", "both"], "both");
  if (discovery === "records" && !remote) throw new SettingError("SH_SANDBOX_DISCOVERY=records needs SH_REMOTE_SANDBOX=1: without it no record may be used. Set SH_REMOTE_SANDBOX=1");
  const records = remote && discovery !== "pods";
  const pods = discovery !== "records";
  const cwd = s.string("KAGENTI_SANDBOX_CWD", "/workspace");
  if (!cwd.startsWith("/") || cwd.includes("\n")) throw new SettingError(`KAGENTI_SANDBOX_CWD=${show(cwd)} must be an absolute path. For example: KAGENTI_SANDBOX_CWD=/workspace`);
  const ttl = s.int("KAGENTI_SANDBOX_LEASE_TTL_MS", 60_000, { min: 100, max: 86_400_000 });
  const heartbeat = s.int("KAGENTI_SANDBOX_HEARTBEAT_MS", Math.min(20_000, Math.floor(ttl / 3)), { min: 10, max: 86_400_000 });
  if (heartbeat >= ttl) throw new SettingError(`KAGENTI_SANDBOX_HEARTBEAT_MS=${heartbeat} must be below KAGENTI_SANDBOX_LEASE_TTL_MS=${ttl}, or leases expire while in use. For example: KAGENTI_SANDBOX_HEARTBEAT_MS=${Math.floor(ttl / 3)}`);
  return {
    placement: placement(s, { pods, records }, warnings),
    pods,
    records,
    namespace: resourceName(s, "KAGENTI_SANDBOX_NAMESPACE") ?? "default",
    context: s.string("KAGENTI_SANDBOX_CONTEXT"),
    cwd,
    kubectl: s.string("KUBECTL", "kubectl"),
    kubectlTimeoutMs: s.int("SH_KUBECTL_TIMEOUT_MS", 20_000, { min: 100, max: 600_000 }),
    cap: s.int("KAGENTI_SANDBOX_CAP", 20, { min: 1, max: 100_000 }),
    leaseTtlMs: ttl,
    heartbeatMs: heartbeat,
    staleMs: s.int("SH_SANDBOX_STALE_MS", 60_000, { min: 100, max: 86_400_000 }),
    labels: labels(s),
    relay: records ? relaySettings(s) : undefined,
  };
}

function placement(s: Settings, use: { pods: boolean; records: boolean }, warnings: string[]): Placement {
  const sel = selector(s);
  if (sel !== undefined || (use.records && !use.pods)) return { kind: "pool", selector: sel };
  const pod = resourceName(s, "KAGENTI_SANDBOX_POD");
  const name = resourceName(s, "KAGENTI_SANDBOX_NAME");
  if (use.records) warnings.push("SH_REMOTE_SANDBOX=1 has no effect without KAGENTI_SANDBOX_POOL_SELECTOR (or SH_SANDBOX_DISCOVERY=records)");
  if (pod) return { kind: "pod", pod };
  if (name) return { kind: "name", name };
  if (s.oneOf("SH_SANDBOX_LOCAL", ["0", "1"], "0") === "1") {
    warnings.push("SH_SANDBOX_LOCAL=1: the model's commands run inside this container, next to its credentials");
    return { kind: "local" };
  }
  warnings.push(NO_SANDBOX);
  return { kind: "none" };
}

export const NO_SANDBOX =
  "no sandbox is configured: set KAGENTI_SANDBOX_POOL_SELECTOR (a pool), KAGENTI_SANDBOX_POD (one pod), or SH_REMOTE_SANDBOX=1 with SH_SANDBOX_DISCOVERY=records (remote workers only). SH_SANDBOX_LOCAL=1 runs commands in the harness's own container";
