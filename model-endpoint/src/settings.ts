import { Settings, type Env } from "@dialout/common";

export interface EndpointSettings {
  host: string;
  port: number;
  /** When set, the only key that is accepted; otherwise any key is, but one must be sent. */
  apiKey?: string;
  /** Bytes. */
  maxBody: number;
}

/** PORT, HOST, MODEL_API_KEY, MODEL_MAX_BODY_BYTES. Throws SettingError. */
export function readSettings(env: Env): EndpointSettings {
  const s = new Settings(env);
  return {
    host: s.string("HOST", "0.0.0.0"),
    port: s.port("PORT", 8080),
    apiKey: s.string("MODEL_API_KEY"),
    maxBody: s.int("MODEL_MAX_BODY_BYTES", 32 << 20, { min: 1024, max: 256 << 20 }),
  };
}
