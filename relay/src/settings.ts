import { SettingError, Settings, show, type Env } from "@dialout/common";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { KeyPair, TlsFiles } from "./certificate";
import { readExecTokens, readWorkerTokens, refuseSharedTokens, type ExecTokens, type WorkerTokens } from "./tokens";

/** Everything the relay can be told, validated. Durations in milliseconds, sizes in bytes. */
export interface RelaySettings {
  host: string;
  attachPort: number;
  execPort: number;
  /** undefined = no health listener. */
  healthPort: number | undefined;
  redisUrl: string;
  /** The exec listener's address as callers reach it; part of the presence record. */
  advertiseAddr: string | undefined;
  tls: (TlsFiles & { pair: KeyPair; reloadMs: number }) | undefined;
  worker: WorkerTokens;
  exec: ExecTokens;
  heartbeatMs: number;
  deadlineMs: number;
  helloDeadlineMs: number;
  drainMs: number;
  windowBytes: number;
  legacyBufferBytes: number;
  maxWorkers: number;
  maxExecs: number;
  maxMessageBytes: number;
  /** Largest Exec frame a base worker gets: early ones end their whole session on a frame above 4 MiB. */
  baseMaxMessageBytes: number;
}

const KiB = 1024;
const MiB = 1024 * KiB;

/** Throws a SettingError that names the variable, its value, the rule and an example; never a secret. */
export function readSettings(env: Env): RelaySettings {
  const s = new Settings(env);
  const attachPort = s.port("SH_RELAY_PORT", 8443);
  const execPort = s.port("SH_RELAY_EXEC_PORT", 8444);
  const healthPort = s.raw("SH_RELAY_HEALTH_PORT") === undefined ? undefined : s.port("SH_RELAY_HEALTH_PORT", 8081);
  refuseSamePort([["SH_RELAY_PORT", attachPort], ["SH_RELAY_EXEC_PORT", execPort], ["SH_RELAY_HEALTH_PORT", healthPort ?? 0]]);

  const heartbeatMs = s.int("SH_RELAY_HEARTBEAT_MS", 15_000, { min: 100, max: 600_000 });
  const deadlineMs = s.int("SH_RELAY_DEADLINE_MS", 45_000, { min: 300, max: 3_600_000 });
  if (deadlineMs < 2 * heartbeatMs) {
    throw new SettingError(`SH_RELAY_DEADLINE_MS=${deadlineMs} must be at least twice SH_RELAY_HEARTBEAT_MS=${heartbeatMs}, or one late heartbeat ends a session. For example: SH_RELAY_DEADLINE_MS=${heartbeatMs * 3}`);
  }
  const worker = readWorkerTokens(s, env);
  const exec = readExecTokens(s, env);
  refuseSharedTokens(worker, exec);
  const maxMessageBytes = s.int("SH_RELAY_MAX_MESSAGE_BYTES", 16 * MiB, { min: 64 * KiB, max: 256 * MiB });

  return {
    host: s.string("SH_RELAY_HOST", "0.0.0.0"),
    attachPort,
    execPort,
    healthPort,
    redisUrl: s.redisUrl(),
    advertiseAddr: s.raw("SH_RELAY_ADVERTISE_ADDR") === undefined ? undefined : s.hostPort("SH_RELAY_ADVERTISE_ADDR"),
    tls: readTls(s),
    worker,
    exec,
    heartbeatMs,
    deadlineMs,
    helloDeadlineMs: s.int("SH_RELAY_HELLO_DEADLINE_MS", 10_000, { min: 50, max: 600_000 }),
    drainMs: s.int("SH_RELAY_DRAIN_MS", 20_000, { min: 0, max: 3_600_000 }),
    // A worker's chunk is up to 32 KiB: a smaller window could leave it waiting for credit that never becomes due.
    windowBytes: s.int("SH_RELAY_WINDOW_BYTES", 512 * KiB, { min: 64 * KiB, max: 64 * MiB }),
    legacyBufferBytes: s.int("SH_RELAY_LEGACY_BUFFER_BYTES", 8 * MiB, { min: 64 * KiB, max: 1024 * MiB }),
    maxWorkers: s.int("SH_RELAY_MAX_WORKERS", 2_000, { min: 1, max: 1_000_000 }),
    maxExecs: s.int("SH_RELAY_MAX_EXECS", 4_000, { min: 1, max: 1_000_000 }),
    maxMessageBytes,
    baseMaxMessageBytes: s.int("SH_RELAY_BASE_MAX_MESSAGE_BYTES", Math.min(4 * MiB, maxMessageBytes), { min: 64 * KiB, max: 256 * MiB }),
  };
}

function refuseSamePort(ports: [string, number][]): void {
  ports.forEach(([name, port], i) => {
    const other = ports.slice(0, i).find(([, p]) => p === port && p !== 0);
    if (other) {
      throw new SettingError(`${name}=${port} is also ${other[0]}: each listener needs its own port, because whoever reaches the Attach port must not reach Exec. For example: ${name}=${port + 1}`);
    }
  });
}

function readTls(s: Settings): RelaySettings["tls"] {
  const certFile = s.raw("SH_RELAY_TLS_CERT_FILE");
  const keyFile = s.raw("SH_RELAY_TLS_KEY_FILE");
  if (!certFile && !keyFile) return undefined;
  if (!certFile || !keyFile) {
    const missing = certFile ? "SH_RELAY_TLS_KEY_FILE" : "SH_RELAY_TLS_CERT_FILE";
    throw new SettingError(`${missing} is not set: TLS needs SH_RELAY_TLS_CERT_FILE and SH_RELAY_TLS_KEY_FILE, or neither. For example: ${missing}=/etc/relay-tls/${certFile ? "tls.key" : "tls.crt"}`);
  }
  const pair = { cert: readPem("SH_RELAY_TLS_CERT_FILE", certFile), key: readPem("SH_RELAY_TLS_KEY_FILE", keyFile) };
  try {
    createSecureContext(pair);
  } catch (e) {
    throw new SettingError(`SH_RELAY_TLS_CERT_FILE and SH_RELAY_TLS_KEY_FILE do not hold a matching PEM certificate and key (${(e as Error).message}). Check: openssl x509 -noout -in ${show(certFile)}`);
  }
  return { certFile, keyFile, pair, reloadMs: s.int("SH_RELAY_TLS_RELOAD_MS", 10_000, { min: 50, max: 3_600_000 }) };
}

function readPem(name: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (e) {
    throw new SettingError(`${name}=${show(file)} cannot be read (${(e as NodeJS.ErrnoException).code ?? "unknown"}): it must name a readable PEM file. Check: ls -l ${show(file)}`);
  }
}
