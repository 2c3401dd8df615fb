import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { beforeAll, expect, it } from "vitest";
import { type Cluster } from "./cluster";
import { Harness } from "./harness";
import { HostWorker } from "./host-worker";
import { modelPlan } from "./manifests/model";
import { place } from "./objects";
import { openTunnel } from "./tunnel";

interface Registered { type: string; name: string; inputs: Record<string, unknown> }
const registered: Registered[] = [];
beforeAll(async () => {
  await pulumi.runtime.setMocks({
    newResource: (args) => {
      registered.push({ type: args.type, name: args.name, inputs: args.inputs as Record<string, unknown> });
      return { id: `${args.name}-id`, state: { ...(args.inputs as object), value: "0123456789abcdef", stdout: "kubeconfig", imageId: "sha256:1" } };
    },
    call: (args) => args.inputs as Record<string, unknown>,
  }, "dialout", "test", false);
});

const settled = () => new Promise((resolve) => setImmediate(() => setTimeout(resolve, 50)));

it("a flip changes one service, and only its env", async () => {
  const services = async (transport: "pods" | "remote") => {
    registered.length = 0;
    const provider = new k8s.Provider(`k8s-${transport}`, { kubeconfig: "k" });
    const cluster: Cluster = { provider, kubeconfig: pulumi.secret("k"), identity: pulumi.output("1") };
    new Harness(`harness-${transport}`, { cluster, place: { namespace: "default" }, image: "i", model: modelPlan({ namespace: "default" }, "scripted"), transport, after: [] });
    await settled();
    return new Map(registered.filter((r) => r.type === "kubernetes:serving.knative.dev/v1:Service").map((r) => [r.name, r.inputs]));
  };
  const before = await services("pods"), after = await services("remote");
  expect([...before.keys()].sort()).toEqual(["serverless-harness", "serverless-harness-arm-miswired", "serverless-harness-arm-pods", "serverless-harness-arm-remote"]);
  const changed = [...before.keys()].filter((k) => JSON.stringify(before.get(k)) !== JSON.stringify(after.get(k)));
  expect(changed).toEqual(["serverless-harness"]);
  const withoutEnv = (o: unknown) => JSON.stringify(o, (k, v: unknown) => (k === "env" ? undefined : v));
  expect(withoutEnv(after.get("serverless-harness"))).toBe(withoutEnv(before.get("serverless-harness")));
});

it("the worker has no port, no mount, no token in its environment, and few capabilities", async () => {
  registered.length = 0;
  const tunnel = openTunnel({ tunnel: "network", relayTls: true, attachTls: false, relayAddress: undefined, workerContainer: "w" }, { node: "c-control-plane" });
  new HostWorker("hw", { container: "w", id: "sbx", image: "sha256:1", capacity: 4, token: pulumi.secret("s3cr3t-token"), tunnel, network: "c", after: [] });
  await settled();
  const { inputs } = registered.find((r) => r.type === "docker:index/container:Container")!;
  expect(inputs.envs).toEqual(["SANDBOX_ID=sbx", "RELAY_ADDR=c-control-plane:30443", "SANDBOX_TOKEN_FILE=/run/dialout/token"]);
  expect(inputs.ports ?? inputs.mounts ?? inputs.volumes ?? inputs.publishAllPorts).toBeUndefined();
  expect(inputs.capabilities).toEqual({ drops: ["ALL"], adds: ["CAP_KILL", "CAP_SETGID", "CAP_SETUID"] });
  expect(inputs.securityOpts).toEqual(["no-new-privileges:true"]);
  expect(inputs.networkMode).toBe("c");
});

it("with TLS the worker verifies the relay by the stack's own authority, and by nothing else", async () => {
  registered.length = 0;
  const tunnel = openTunnel({ tunnel: "network", relayTls: true, attachTls: true, relayAddress: undefined, workerContainer: "w" }, { node: "c-control-plane" });
  new HostWorker("hw-tls", { container: "w", id: "sbx", image: "sha256:1", capacity: 4, token: pulumi.secret("s3cr3t-token"), tunnel, ca: "PEM", network: "c", after: [] });
  await settled();
  const { inputs } = registered.find((r) => r.type === "docker:index/container:Container")!;
  expect(inputs.envs).toEqual(expect.arrayContaining(["RELAY_TLS=1", "RELAY_TLS_CA_FILE=/run/dialout/relay-ca.pem"]));
  expect(tunnel.path).toContain("TLS");
});

it("a kind that nobody mapped is refused instead of left out", () => {
  const parent = new pulumi.ComponentResource("test:index:Parent", "p");
  expect(() => place({} as never, parent, { apiVersion: "v1", kind: "Odd", metadata: { name: "x" } })).toThrow(/no resource type for v1 Odd/);
});

