import { inCluster, names, type Place, ports, secretEnv } from "./common";
import { type HarnessModel } from "./harness";

export type ModelKind = "scripted" | "anthropic" | "openai-compatible" | "ollama";

export interface ModelPlan extends HarnessModel {
  readonly kind: ModelKind;
  /** Shown wherever a verdict is. */
  readonly label: string;
  /** Base URL as the cluster reaches it. */
  readonly url: string;
  /** Keys of the Secret `llm-credentials`, without the user's key. */
  readonly secret: { "api-key"?: string; "base-url": string };
}

/** How the harness reaches its model. `name` and `baseUrl` are the user's, where given. */
export function modelPlan(place: Place, kind: ModelKind, name?: string, baseUrl?: string): ModelPlan {
  switch (kind) {
    case "scripted": {
      const url = `http://${inCluster(place, names.model, ports.http)}`;
      // A key has to be sent, any will do.
      return plan(kind, "scripted-1", url, "scripted (no language model)", [{ name: "SH_MODEL_CUSTOM", value: "1" }], { "api-key": "scripted", "base-url": url });
    }
    case "anthropic":
      return plan(kind, name ?? "claude-haiku-4-5", baseUrl ?? "https://api.anthropic.com", undefined, baseUrl ? [{ name: "SH_MODEL_CUSTOM", value: "1" }] : []);
    case "openai-compatible":
      return plan(kind, name ?? "", baseUrl ?? "", undefined, [
        { name: "SH_MODEL_PROVIDER", value: kind },
        secretEnv("OPENAI_BASE_URL", names.modelSecret, "base-url"),
        secretEnv("OPENAI_API_KEY", names.modelSecret, "api-key"),
      ]);
    case "ollama":
      return plan(kind, name ?? "", baseUrl ?? "", undefined, [{ name: "SH_MODEL_PROVIDER", value: kind }, secretEnv("OLLAMA_BASE_URL", names.modelSecret, "base-url")]);
  }
}

function plan(kind: ModelKind, name: string, url: string, label: string | undefined, env: HarnessModel["env"], secret: ModelPlan["secret"] = { "base-url": url }): ModelPlan {
  return { kind, name, url, label: label ?? `${kind} ${name}`, env, secret };
}

/** Port of a URL, the scheme's own when it names none. */
export function portOf(url: string): number {
  const u = new URL(url);
  return Number(u.port) || (u.protocol === "https:" ? 443 : 80);
}
