import { readFileSync } from "node:fs";
import path from "node:path";
import { load } from "js-yaml";
import { describe, expect, it } from "vitest";
import { parseSettings, schema, SettingProblem } from "./settings";
import { root, versions } from "./versions";

const problem = (raw: Record<string, string>, key = false) => {
  try {
    parseSettings(raw, key);
  } catch (e) {
    expect(e).toBeInstanceOf(SettingProblem);
    return (e as Error).message;
  }
  throw new Error("was accepted");
};

describe("parseSettings", () => {
  it("has a default for everything: an owned cluster, its network, pinned images, the scripted model", () => {
    expect(parseSettings({}, false)).toMatchObject({ clusterMode: "owned", tunnel: "network", installKnative: true, transport: "pods", model: "scripted", redisImage: versions.images.redis });
  });

  it.each([
    ["transport", "podz", /dialout:transport is "podz", but must be one of pods, remote\. Set it: pulumi config set dialout:transport pods$/],
    ["workerCapacity", "0", /dialout:workerCapacity is "0", but must be a whole number from 1 to 64\. Set it: pulumi config set dialout:workerCapacity 4$/],
    ["workerCapacity", "many", /whole number from 1 to 64/],
    ["workerCapacity", "1.5", /whole number from 1 to 64/],
    ["clusterName", "My_Cluster", /dialout:clusterName is "My_Cluster", but must be 1 to 32 of a-z/],
    ["relayAddress", "nowhere", /HOST:PORT/],
    ["relayAddress", "h:70000", /HOST:PORT/],
    ["relayTls", "yes", /true or false/],
    ["attachTls", "1", /true or false/],
    ["relayCaFile", "/ca.pem", /only used for TLS to a published relay/],
    ["modelBaseUrl", "ftp://x", /http:\/\/ or https:\/\//],
    ["workerId", "-a", /1 to 63 characters/],
    ["redisImage", "UPPER CASE", /image reference/],
    ["preloadImages", "redis:7", /list of texts/],
    ["preloadImages", '["a b"]', /image references/],
    ["ingressService", "kourier", /NAMESPACE\/NAME/],
  ])("refuses %s=%s with key, value, rule and command", (key, value, message) => {
    expect(problem({ [key]: value })).toMatch(message);
  });

  it("refuses a key that is not a setting and says how to remove it", () => {
    expect(problem({ transprot: "pods" })).toMatch(/dialout:transprot is not a setting\. Remove it: pulumi config rm dialout:transprot/);
  });

  it("never shows the model key", () => {
    expect(problem({ modelApiKey: "sk-hunter2", transport: "x" }, true)).not.toMatch(/hunter2/);
  });

  it("existing mode needs kubeconfig, context and a namespace of its own", () => {
    const base = { clusterMode: "existing", relayAddress: "relay.example.com:443" };
    expect(problem(base)).toMatch(/dialout:kubeconfig is not set/);
    expect(problem({ ...base, kubeconfig: "k" })).toMatch(/dialout:kubeContext is not set/);
    expect(problem({ ...base, kubeconfig: "k", kubeContext: "c" })).toMatch(/namespace/);
    const named = { ...base, kubeconfig: "k", kubeContext: "c", namespace: "mine" };
    expect(problem(named)).toMatch(/dialout:imageLoadCommand is not set.*kind load docker-image/);
    expect(parseSettings({ ...named, imageLoadCommand: "kind load docker-image --name x", imageSource: "local" }, false)).toMatchObject({ tunnel: "address", installKnative: false });
    expect(problem({ imageLoadCommand: "kind load docker-image" })).toMatch(/an owned cluster gets its images by itself/);
  });

  it("a real model needs what it needs", () => {
    expect(problem({ model: "anthropic" })).toMatch(/--secret dialout:modelApiKey/);
    expect(problem({ model: "ollama" })).toMatch(/modelBaseUrl/);
    expect(parseSettings({ model: "anthropic" }, true).model).toBe("anthropic");
  });

  it("an ingress of one's own needs class and service", () => {
    expect(problem({ ingressManifests: '["x.yaml"]' })).toMatch(/ingressClass and ingressService/);
  });
});

it("Pulumi.yaml describes exactly these settings, with the same defaults", () => {
  const yaml = load(readFileSync(path.join(root, "Pulumi.yaml"), "utf8")) as { config: Record<string, { default: unknown; description: string }> };
  expect(Object.keys(yaml.config).sort()).toEqual(Object.keys(schema.shape).sort());
  const asText = Object.fromEntries(Object.entries(yaml.config).map(([k, v]) => [k, Array.isArray(v.default) ? JSON.stringify(v.default) : String(v.default)]));
  expect(parseSettings(asText, false)).toEqual(parseSettings({}, false));
  for (const [key, v] of Object.entries(yaml.config)) expect(v.description, key).toBeTruthy();
});
