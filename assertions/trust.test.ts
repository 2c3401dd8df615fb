import { describe, expect, it } from "vitest";
import { FakeWorld, TOKEN } from "./fakes";
import type { Inspected } from "./ports";
import { openListeners, trustProblems } from "./trust";

const IMAGE_ENV = ["PATH=/usr/bin:/bin", "container=oci"];
function judge(change: (c: Inspected) => void, extra = "") {
  const c = new FakeWorld().container!;
  change(c);
  return trustProblems(c, JSON.stringify(c) + extra, IMAGE_ENV, "sbx-laptop-demo", [TOKEN]);
}

describe("trustProblems", () => {
  it("has nothing against the container as we make it", () => {
    expect(judge(() => {})).toEqual([]);
    expect(judge((c) => (c.NetworkSettings.Ports = { "8080/tcp": null }))).toEqual([]);
  });
  it.each<[string, (c: Inspected) => void, RegExp]>([
    ["a port that is to be published", (c) => (c.HostConfig.PortBindings = { "22/tcp": [{ HostPort: "" }] }), /publishes ports: 22\/tcp/],
    ["a port that is published", (c) => (c.NetworkSettings.Ports = { "22/tcp": [{ HostPort: "1" }] }), /publishes ports: 22\/tcp/],
    ["all ports", (c) => (c.HostConfig.PublishAllPorts = true), /publishes ports: all/],
    ["a mount", (c) => c.Mounts.push({ Source: "/var/run/docker.sock" }), /1 mounts/],
    ["another container's volumes", (c) => (c.HostConfig.VolumesFrom = ["x"]), /foreign mounts/],
    ["the host's network", (c) => (c.HostConfig.NetworkMode = "host"), /network namespace \(host\)/],
    ["another container's network", (c) => (c.HostConfig.NetworkMode = "container:abc"), /network namespace/],
    ["the host's processes", (c) => (c.HostConfig.PidMode = "host"), /pid namespace/],
    ["the host's shared memory", (c) => (c.HostConfig.IpcMode = "host"), /ipc namespace/],
    ["privilege", (c) => (c.HostConfig.Privileged = true), /privileged/],
    ["a device", (c) => (c.HostConfig.Devices = [{}]), /1 host devices/],
    ["a key of a model", (c) => c.Config.Env!.push("ANTHROPIC_API_KEY=x"), /should not have: ANTHROPIC_API_KEY/],
    ["a kubeconfig", (c) => c.Config.Env!.push("KUBECONFIG=/x"), /should not have: KUBECONFIG/],
    ["the token as a value", (c) => c.Config.Env!.push("SANDBOX_TOKEN=t"), /should not have: SANDBOX_TOKEN/],
    ["a changed variable of the image", (c) => (c.Config.Env![3] = "PATH=/evil"), /should not have: PATH/],
    ["no token file", (c) => c.Config.Env!.splice(2, 1), /lacks environment: SANDBOX_TOKEN_FILE/],
    ["no environment", (c) => (c.Config.Env = null), /lacks environment/],
    ["another id", (c) => (c.Config.Env![0] = "SANDBOX_ID=other"), /is worker "other"/],
  ])("objects to %s", (_what, change, why) => {
    expect(judge(change).join("; ")).toMatch(why);
  });
  it("finds the token wherever it is, and does not repeat it", () => {
    const problems = judge(() => {}, `{"Labels":{"x":"${TOKEN}"}}`);
    expect(problems).toEqual(["shows a token in its inspect output"]);
  });
});

describe("openListeners", () => {
  const line = (local: string, state = "0A") => `   0: ${local} 00000000:0000 ${state} 00000000:00000000\n`;
  it.each([["00000000:1F90"], ["0B01A8C0:0016"], ["00000000000000000000000000000000:2328"], ["0000000000000000FFFF00000B01A8C0:2328"]])("sees %s", (local) => {
    expect(openListeners(line(local))).toHaveLength(1);
  });
  it.each([["0100007F:1F90"], ["0B00007F:9C41"], ["00000000000000000000000001000000:2328"], ["0000000000000000FFFF00000100007F:2328"]])("leaves the loopback %s out", (local) => {
    expect(openListeners(line(local))).toEqual([]);
  });
  it("looks at listening sockets only", () => {
    expect(openListeners(`  sl  local_address rem_address   st\n${line("00000000:1F90", "01")}\n\n`)).toEqual([]);
  });
});
