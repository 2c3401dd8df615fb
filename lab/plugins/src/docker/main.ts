#!/usr/bin/env node
// Stand-in for pulumi-resource-docker: the types and properties that the program uses.
import { UserError } from "../provider/errors";
import { serve } from "../provider/serve";
import { CONTAINER, Container } from "./container";
import { DEFAULT_HOST, Engine } from "./engine";
import { NETWORK, Network } from "./network";
import { REMOTE_IMAGE, RemoteImage } from "./remote-image";
import { TAG, Tag } from "./tag";

let engine = (): Engine => {
  throw new UserError("docker stand-in: used before it was configured");
};
const current = (): Engine => engine();

serve(
  {
    name: "docker",
    version: "5.2.0",
    // Pulumi marks the outputs that bear the name of a secret input
    acceptSecrets: false,
    resources: { [CONTAINER]: new Container(current), [NETWORK]: new Network(current), [REMOTE_IMAGE]: new RemoteImage(current), [TAG]: new Tag(current) },
    settings: ["host"],
    configure: ({ host }) => {
      const made = new Engine(String(host ?? process.env.DOCKER_HOST ?? "") || DEFAULT_HOST);
      engine = () => made;
    },
  },
  process.argv.slice(2),
).catch((error: unknown) => {
  console.error(error instanceof UserError ? error.message : error);
  process.exit(1);
});
