import * as pulumi from "@pulumi/pulumi";

interface Inputs {
  readonly names: string[];
}
interface Outputs extends Inputs {
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

// This object is serialized into the state, and `delete` runs the copy of the last `up`: it captures nothing, and reads project code when it runs.
const provider: pulumi.dynamic.ResourceProvider<Inputs, Outputs> = {
  async create(inputs) {
    const { randomUUID } = await import("node:crypto");
    const { pathToFileURL } = await import("node:url");
    const { makeCertificate } = await import(pathToFileURL("components/scripts/certificate.mjs").href);
    return { id: randomUUID(), outs: { ...inputs, ...(await makeCertificate(inputs.names)) } };
  },
  async diff(_id, olds, news) {
    const changes = JSON.stringify(olds.names) !== JSON.stringify(news.names);
    return { changes, replaces: changes ? ["names"] : [] };
  },
  async update(_id, olds) {
    return { outs: olds };
  },
  async delete() {},
};

/** Certificate of the relay's attach listener for these DNS names, with an authority of its own; made once, the key a secret in the state. */
export class AttachCertificate extends pulumi.dynamic.Resource {
  /** PEM. The authority's certificate is public: it is what workers verify the relay by. */
  declare readonly ca: pulumi.Output<string>;
  declare readonly certificate: pulumi.Output<string>;
  declare readonly key: pulumi.Output<string>;

  constructor(name: string, args: { names: pulumi.Input<string>[] }, opts: pulumi.CustomResourceOptions = {}) {
    super(provider, name, { ...args, ca: undefined, certificate: undefined, key: undefined }, { ...opts, additionalSecretOutputs: ["key"] }, "dialout", "AttachCertificate");
  }
}
