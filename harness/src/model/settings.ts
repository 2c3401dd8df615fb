import { SettingError, show, type Settings } from "@dialout/common";

export const PROVIDERS = ["anthropic", "openai-compatible", "ollama"] as const;
export type Provider = (typeof PROVIDERS)[number];

export interface ModelSettings {
  provider: Provider;
  /** SH_MODEL; without it only the anthropic provider has a default. */
  model?: string;
  anthropic: { baseUrl: string; apiKey?: string; authToken?: string };
  openai: { baseUrl?: string; apiKey?: string };
  ollama: { baseUrl: string };
  /** Further tries after a failed request; each waits longer. */
  maxRetries: number;
  /** Milliseconds one request may take. */
  timeoutMs: number;
  maxOutputTokens: number;
}

export const DEFAULT_MODEL = "claude-opus-4-8";

function baseUrl(s: Settings, name: string, example: string): string | undefined {
  const v = s.string(name);
  if (v === undefined) return undefined;
  let url: URL | undefined;
  try {
    url = new URL(v);
  } catch {
    // falls through to the one message below
  }
  if (!url || !/^https?:$/.test(url.protocol)) throw new SettingError(`${name}=${show(v)} must be an http:// or https:// URL. For example: ${name}=${example}`);
  if (url.username || url.password) throw new SettingError(`${name} must not hold credentials: a URL ends up in logs. Use the key's own variable`);
  return v.replace(/\/+$/, "");
}

/** A key with a line break cannot be sent as a header; the error must not show it. */
function secret(s: Settings, name: string): string | undefined {
  const v = s.string(name);
  if (v !== undefined && !/^[\x21-\x7e]+$/.test(v)) throw new SettingError(`${name} must be one word of printable ASCII; it holds a space, a line break or another character`);
  return v;
}

export function readModelSettings(s: Settings, warnings: string[]): ModelSettings {
  const anthropicUrl = baseUrl(s, "ANTHROPIC_BASE_URL", "https://api.anthropic.com");
  const custom = s.oneOf("SH_MODEL_CUSTOM", ["0", "1"], "0") === "1";
  const settings: ModelSettings = {
    provider: s.oneOf("SH_MODEL_PROVIDER", PROVIDERS, "anthropic"),
    model: s.string("SH_MODEL"),
    anthropic: { baseUrl: anthropicUrl ?? "https://api.anthropic.com", apiKey: secret(s, "ANTHROPIC_API_KEY"), authToken: secret(s, "ANTHROPIC_AUTH_TOKEN") },
    openai: { baseUrl: baseUrl(s, "OPENAI_BASE_URL", "http://localhost:8000/v1"), apiKey: secret(s, "OPENAI_API_KEY") },
    ollama: { baseUrl: baseUrl(s, "OLLAMA_BASE_URL", "http://localhost:11434") ?? "http://localhost:11434" },
    maxRetries: s.int("SH_MODEL_MAX_RETRIES", 2, { min: 0, max: 10 }),
    timeoutMs: s.int("SH_MODEL_TIMEOUT_MS", 120_000, { min: 100, max: 3_600_000 }),
    maxOutputTokens: s.int("SH_MODEL_MAX_OUTPUT_TOKENS", 8192, { min: 16, max: 1_000_000 }),
  };
  if (custom && settings.provider === "anthropic" && !anthropicUrl) {
    throw new SettingError("SH_MODEL_CUSTOM=1 needs ANTHROPIC_BASE_URL: a custom model id has to name the endpoint that serves it. For example: ANTHROPIC_BASE_URL=http://model-endpoint:8080");
  }
  const gap = missingSetting(settings, settings.provider, settings.model);
  if (gap) warnings.push(`${gap} Until then every leaf fails`);
  return settings;
}

/** What has to be set before this provider can be asked, or undefined when nothing is missing. */
export function missingSetting(m: ModelSettings, provider: Provider, model: string | undefined): string | undefined {
  if (provider === "anthropic") {
    return m.anthropic.apiKey || m.anthropic.authToken ? undefined : "no model credentials: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN.";
  }
  if (provider === "openai-compatible" && !m.openai.baseUrl) return "OPENAI_BASE_URL is not set: the provider openai-compatible needs it, for example OPENAI_BASE_URL=http://localhost:8000/v1.";
  return model ? undefined : `SH_MODEL is not set: the provider ${provider} has no default model.`;
}
