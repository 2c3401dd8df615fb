import * as command from "@pulumi/command";
import * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();
const image = config.require("image");
const stage = config.requireNumber("stage");
const token = config.requireSecret("token");
const who = stage === 1 ? "one" : "two";
if (stage === 3) throw new Error("the program fails on purpose");
console.log("said by the program");

class Doubled extends pulumi.dynamic.Resource {
  declare readonly doubled: pulumi.Output<string>;
  constructor(name: string, of: pulumi.Input<string>) {
    const provider = { create: (inputs: { of: string }) => Promise.resolve({ id: "d", outs: { doubled: `${inputs.of}${inputs.of}` } }) };
    super(provider, name, { of, doubled: undefined });
  }
}

const network = new docker.Network("network", { name: "plugtry-program", labels: [{ label: "made-by", value: "test" }] });
const built = new docker.RemoteImage("built", {
  name: `plugtry-program:${who}`,
  build: { context: "context", dockerfile: "Dockerfile", buildArgs: { BASE: image, WHO: who }, useLegacyBuilder: true },
  forceRemove: true,
});
const tag = new docker.Tag("tag", { sourceImage: image, targetImage: "plugtry-program:tag" });
const container = new docker.Container("container", {
  name: "plugtry-program",
  image: built.imageId,
  command: ["sleep", "1000"],
  envs: [pulumi.interpolate`TOKEN=${token}`],
  uploads: [{ file: "/etc/token", content: token, permissions: "0400" }],
  networksAdvanced: [{ name: network.name, aliases: ["me"] }],
  restart: stage === 1 ? "unless-stopped" : "no",
  destroyGraceSeconds: 1,
});
const asked = new command.local.Command("asked", {
  create: pulumi.interpolate`docker exec ${container.id} sh -c 'cat /who; wc -c < /etc/token'`,
  delete: "true",
  triggers: [built.imageId],
});
const updated = new command.local.Command("updated", { create: "echo $WHO", environment: { WHO: who } });

export const answer = asked.stdout;
export const told = updated.stdout;
export const doubled = new Doubled("doubled", "ab").doubled;
export const tagged = tag.sourceImageId.apply((id) => id.startsWith("sha256:"));
export const secretToken = token;
