import { describe, expect, it } from "vitest";
import { readSettings } from "./settings";

const base = { ANTHROPIC_API_KEY: "k", KAGENTI_SANDBOX_POOL_SELECTOR: "sh.kagenti.io/sandbox-pool=default" };
const of = (env: Record<string, string> = {}) => readSettings({ ...base, ...env });

it("has the contract's defaults", () => {
  const s = of();
  expect(s).toMatchObject({ port: 8080, resultTtlS: 86_400, maxTurns: 40, saturation: { waitMs: 30_000, backoffMs: 250, maxBackoffMs: 5000, retryAfterS: 5 }, warnings: [] });
  expect(s.sandbox).toMatchObject({ pods: true, records: false, namespace: "default", cwd: "/workspace", cap: 20, leaseTtlMs: 60_000, heartbeatMs: 20_000, staleMs: 60_000, kubectl: "kubectl", relay: undefined });
});

it("the remote flag is exactly 1, anything else is off and said so", () => {
  expect(of({ SH_REMOTE_SANDBOX: "true" }).sandbox.records).toBe(false);
  expect(of({ SH_REMOTE_SANDBOX: "true" }).warnings).toEqual([expect.stringMatching(/SH_REMOTE_SANDBOX="true" is not exactly 1/)]);
  expect(of({ SH_REMOTE_SANDBOX: "0" }).warnings).toEqual([]);
  const on = of({ SH_REMOTE_SANDBOX: "1", SH_RELAY_EXEC_TOKEN: "t" }).sandbox;
  expect(on).toMatchObject({ pods: true, records: true, relay: { addr: "sandbox-relay.default.svc.cluster.local:8444", execToken: "t", graceMs: 30_000 } });
});

it("records alone need no selector and no kubectl", () => {
  const s = readSettings({ ANTHROPIC_API_KEY: "k", SH_REMOTE_SANDBOX: "1", SH_SANDBOX_DISCOVERY: "records", SH_RELAY_EXEC_TOKEN: "t" });
  expect(s.sandbox).toMatchObject({ pods: false, records: true, placement: { kind: "pool", selector: undefined } });
});

it("without any sandbox it starts, and says what is missing", () => {
  const s = readSettings({ ANTHROPIC_API_KEY: "k" });
  expect(s.sandbox.placement).toEqual({ kind: "none" });
  expect(s.warnings.join()).toMatch(/no sandbox is configured: set KAGENTI_SANDBOX_POOL_SELECTOR/);
});

it("missing model credentials are a warning at start", () => {
  expect(readSettings({ ...base, ANTHROPIC_API_KEY: "" }).warnings.join()).toMatch(/set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN/);
});

describe("refuses by name", () => {
  it.each<[Record<string, string>, RegExp]>([
    [{ PORT: "http" }, /^PORT="http" must be/],
    [{ REDIS_URL: "localhost" }, /^REDIS_URL must be/],
    [{ SH_MODEL_PROVIDER: "gpt" }, /^SH_MODEL_PROVIDER="gpt" must be one of anthropic, openai-compatible, ollama/],
    [{ ANTHROPIC_BASE_URL: "llm.example" }, /^ANTHROPIC_BASE_URL="llm.example" must be an http/],
    [{ ANTHROPIC_BASE_URL: "http://u:p@h" }, /^ANTHROPIC_BASE_URL must not hold credentials/],
    [{ ANTHROPIC_API_KEY: "a b" }, /^ANTHROPIC_API_KEY must be one word/],
    [{ SH_MODEL_CUSTOM: "1" }, /^SH_MODEL_CUSTOM=1 needs ANTHROPIC_BASE_URL/],
    [{ SH_REMOTE_SANDBOX: "1" }, /^SH_RELAY_EXEC_TOKEN is not set/],
    [{ SH_REMOTE_SANDBOX: "1", SH_RELAY_EXEC_TOKEN: "a\nb" }, /^SH_RELAY_EXEC_TOKEN must be one word/],
    [{ SH_REMOTE_SANDBOX: "1", SH_RELAY_EXEC_TOKEN: "t", SH_RELAY_ADDR: "relay" }, /^SH_RELAY_ADDR="relay" must be HOST:PORT/],
    [{ SH_REMOTE_SANDBOX: "1", SH_RELAY_EXEC_TOKEN: "t", SH_RELAY_ADDR_ALLOW: "*" }, /^SH_RELAY_ADDR_ALLOW=/],
    [{ SH_REMOTE_SANDBOX: "1", SH_RELAY_EXEC_TOKEN: "t", SH_RELAY_TLS: "1", SH_RELAY_TLS_CA_FILE: "/nope" }, /^SH_RELAY_TLS_CA_FILE="\/nope" cannot be read \(ENOENT\)/],
    [{ SH_SANDBOX_DISCOVERY: "records" }, /^SH_SANDBOX_DISCOVERY=records needs SH_REMOTE_SANDBOX=1/],
    [{ SH_SANDBOX_DISCOVERY: "all" }, /^SH_SANDBOX_DISCOVERY="all" must be one of/],
    [{ SH_SANDBOX_LABELS: "os" }, /^SH_SANDBOX_LABELS="os" must be KEY=VALUE/],
    [{ KAGENTI_SANDBOX_POOL_SELECTOR: "--all" }, /^KAGENTI_SANDBOX_POOL_SELECTOR="--all" must be a label selector/],
    [{ KAGENTI_SANDBOX_CWD: "workspace" }, /^KAGENTI_SANDBOX_CWD="workspace" must be an absolute path/],
    [{ KAGENTI_SANDBOX_HEARTBEAT_MS: "60000" }, /^KAGENTI_SANDBOX_HEARTBEAT_MS=60000 must be below/],
    [{ KAGENTI_SANDBOX_CAP: "0" }, /^KAGENTI_SANDBOX_CAP="0" must be/],
    [{ LEAF_RESULT_TTL_SECONDS: "1h" }, /^LEAF_RESULT_TTL_SECONDS="1h"/],
    [{ CONTEXT_SERVICE_URL: "http://c" }, /^CONTEXT_SERVICE_URL="http:\/\/c" is not supported/],
  ])("%j", (env, message) => {
    expect(() => of(env)).toThrow(message);
  });

  it("a secret that is refused is not shown", () => {
    expect(() => of({ ANTHROPIC_API_KEY: "hunter2 x" })).toThrow(/^(?!.*hunter2)/);
  });
});
