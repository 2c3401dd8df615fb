// Asks the model's endpoint from inside a harness pod: same network, same address, same credentials as the leaves.
import type { ProofInput } from "./input";
import type { ClusterPort, ModelPort, ModelProbe } from "./ports";

/** Runs in the harness's container (Node.js). Reads its environment, prints one JSON line, never a credential. */
const PROBE = `
const e = process.env, kind = e.SH_MODEL_PROVIDER || "anthropic";
const bare = (u) => u.replace(/\\/+$/, "");
const v1 = (u) => (/\\/v1$/.test(bare(u)) ? bare(u) : bare(u) + "/v1");
const bearer = (t) => (t ? { authorization: "Bearer " + t } : {});
const at = {
  anthropic: () => [v1(e.ANTHROPIC_BASE_URL || "https://api.anthropic.com") + "/models", { "anthropic-version": "2023-06-01", ...(e.ANTHROPIC_AUTH_TOKEN ? bearer(e.ANTHROPIC_AUTH_TOKEN) : { "x-api-key": e.ANTHROPIC_API_KEY || "" }) }],
  "openai-compatible": () => [bare(e.OPENAI_BASE_URL || "http://localhost:8000/v1") + "/models", bearer(e.OPENAI_API_KEY)],
  ollama: () => [bare(e.OLLAMA_BASE_URL || "http://localhost:11434") + "/api/tags", {}],
};
const [url, headers] = at[kind]();
fetch(url, { headers, redirect: "manual", signal: AbortSignal.timeout(15000) }).then(
  (r) => console.log(JSON.stringify({ url, status: r.status })),
  (x) => console.log(JSON.stringify({ url, error: (x.cause && (x.cause.message || x.cause.code)) || x.message })),
).finally(() => process.exit(0));
`;

export class Model implements ModelPort {
  constructor(private readonly cluster: ClusterPort, private readonly input: ProofInput) {}

  async probe(): Promise<ModelProbe> {
    const service = this.input.arms.remote;
    const [pod] = await this.cluster.runningPods(`serving.knative.dev/service=${service}`);
    if (!pod) throw new Error(`no running pod of ${service} to ask from`);
    const r = await this.cluster.exec(pod.name, ["node", "-e", PROBE], "user-container");
    if (r.exitCode !== 0) throw new Error(`the probe in ${pod.name} ended with ${r.exitCode}: ${r.stderr.slice(-200)}`);
    return readProbe(r.stdout);
  }
}

export function readProbe(stdout: string): ModelProbe {
  const parsed = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Record<string, unknown>;
  const { url, status, error } = parsed;
  if (typeof url !== "string" || (typeof status !== "number" && typeof error !== "string")) throw new Error("the probe printed something else than its answer");
  return { url, ...(typeof status === "number" ? { status } : { error: String(error) }) };
}
