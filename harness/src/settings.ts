import { SettingError, Settings, show, type Env } from "@dialout/common";
import { readModelSettings, type ModelSettings } from "./model/settings";
import { readSandboxSettings, type SandboxSettings } from "./sandbox/settings";

export interface HarnessSettings {
  host: string;
  port: number;
  redisUrl: string;
  /** Milliseconds after which a Redis command is given up. */
  redisTimeoutMs: number;
  /** Bytes of a request body. */
  maxBody: number;
  /** Leaves and turns at once in this process; more are answered 503. */
  maxLeaves: number;
  /** How long SIGTERM lets running leaves go on. */
  drainMs: number;
  resultTtlS: number;
  /** 0 = session logs are kept for ever. */
  sessionTtlS: number;
  maxTurns: number;
  saturation: { waitMs: number; backoffMs: number; maxBackoffMs: number; retryAfterS: number };
  model: ModelSettings;
  sandbox: SandboxSettings;
  /** Things that are allowed but probably not meant; logged at start. */
  warnings: string[];
}

const YEAR_S = 366 * 86_400;

/** Reads and checks every variable the harness knows. Throws SettingError naming the first one that is wrong. */
export function readSettings(env: Env): HarnessSettings {
  const s = new Settings(env);
  if (s.raw("CONTEXT_SERVICE_URL")) {
    throw new SettingError(`CONTEXT_SERVICE_URL=${show(env.CONTEXT_SERVICE_URL!)} is not supported: this harness has no workloads. Unset it`);
  }
  const warnings: string[] = [];
  return {
    host: s.string("HOST", "0.0.0.0"),
    port: s.port("PORT", 8080),
    redisUrl: s.redisUrl(),
    redisTimeoutMs: s.int("SH_REDIS_TIMEOUT_MS", 3000, { min: 50, max: 60_000 }),
    maxBody: s.int("HARNESS_MAX_BODY_BYTES", 1 << 20, { min: 1024, max: 64 << 20 }),
    maxLeaves: s.int("HARNESS_MAX_LEAVES", 64, { min: 1, max: 10_000 }),
    // Just below what Knative gives a pod to end in (the revision's timeoutSeconds, 300).
    drainMs: s.int("HARNESS_DRAIN_MS", 280_000, { min: 0, max: 3_600_000 }),
    resultTtlS: s.int("LEAF_RESULT_TTL_SECONDS", 86_400, { min: 1, max: YEAR_S }),
    sessionTtlS: s.int("SH_SESSION_TTL_SECONDS", 7 * 86_400, { min: 0, max: YEAR_S }),
    maxTurns: s.int("SH_MAX_TURNS", 40, { min: 1, max: 1000 }),
    saturation: {
      waitMs: s.int("KAGENTI_SYNC_SATURATION_WAIT_MS", 30_000, { min: 0, max: 3_600_000 }),
      backoffMs: s.int("KAGENTI_SYNC_SATURATION_BACKOFF_MS", 250, { min: 1, max: 60_000 }),
      maxBackoffMs: s.int("KAGENTI_SYNC_SATURATION_MAX_BACKOFF_MS", 5000, { min: 1, max: 600_000 }),
      retryAfterS: s.int("KAGENTI_SYNC_SATURATION_RETRY_AFTER_S", 5, { min: 0, max: 86_400 }),
    },
    model: readModelSettings(s, warnings),
    sandbox: readSandboxSettings(s, warnings),
    warnings,
  };
}
