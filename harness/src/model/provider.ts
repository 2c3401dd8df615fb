import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModel } from "ai";
import { LeafFailure } from "../leaf/result";
import { DEFAULT_MODEL, missingSetting, type ModelSettings, type Provider } from "./settings";

export interface ChosenModel {
  model: LanguageModel;
  provider: Provider;
  id: string;
}

/** Ends a request that takes longer than `ms`, the reading of its answer included. */
function timedFetch(ms: number): typeof fetch {
  return (input, init) => {
    const limit = AbortSignal.timeout(ms);
    return fetch(input, { ...init, signal: init?.signal ? AbortSignal.any([init.signal, limit]) : limit });
  };
}

const versioned = (base: string) => (/\/v\d+$/.test(base) ? base : `${base}/v1`);

/** The model of one leaf: what the request asks for, else what the settings say. Throws LeafFailure naming what is not set. */
export function chooseModel(m: ModelSettings, asked: { model?: string; provider?: Provider } = {}): ChosenModel {
  const provider = asked.provider ?? m.provider;
  // SH_MODEL belongs to SH_MODEL_PROVIDER; another provider would hardly know it.
  const own = provider === m.provider ? m.model : undefined;
  const id = asked.model ?? own ?? (provider === "anthropic" ? DEFAULT_MODEL : undefined);
  const gap = missingSetting(m, provider, id);
  if (gap || id === undefined) throw new LeafFailure("error", gap ?? "no model");
  return { model: build(m, provider, id), provider, id };
}

function build(m: ModelSettings, provider: Provider, id: string): LanguageModel {
  const fetch = timedFetch(m.timeoutMs);
  if (provider === "anthropic") {
    const { baseUrl, apiKey, authToken } = m.anthropic;
    return createAnthropic({ baseURL: versioned(baseUrl), fetch, ...(authToken ? { authToken } : { apiKey }) })(id);
  }
  if (provider === "ollama") return createOpenAICompatible({ name: "ollama", baseURL: versioned(m.ollama.baseUrl), apiKey: "ollama", fetch })(id);
  return createOpenAICompatible({ name: "openai-compatible", baseURL: m.openai.baseUrl!, apiKey: m.openai.apiKey, fetch })(id);
}

/** Where the provider's requests go, for messages. */
export const endpointOf = (m: ModelSettings, provider: Provider) =>
  provider === "anthropic" ? m.anthropic.baseUrl : provider === "ollama" ? m.ollama.baseUrl : (m.openai.baseUrl ?? "");

/** The variables to look at when the endpoint refuses or cannot be reached. */
export const variablesOf: Record<Provider, { key: string; url: string }> = {
  anthropic: { key: "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN", url: "ANTHROPIC_BASE_URL" },
  "openai-compatible": { key: "OPENAI_API_KEY", url: "OPENAI_BASE_URL" },
  ollama: { key: "the Ollama server", url: "OLLAMA_BASE_URL" },
};

export const secretsOf = (m: ModelSettings) => [m.anthropic.apiKey, m.anthropic.authToken, m.openai.apiKey].filter((s): s is string => Boolean(s) && s!.length >= 4);
