import * as crypto from "node:crypto";
import * as pulumi from "@pulumi/pulumi";

interface Inputs {
  readonly bytes: number;
}
interface Outputs extends Inputs {
  readonly value: string;
}

// This object is serialized into the state, and `delete` runs the copy of the last `up`: it captures nothing but a built-in module.
const provider: pulumi.dynamic.ResourceProvider<Inputs, Outputs> = {
  async create(inputs) {
    const value = crypto.randomBytes(inputs.bytes).toString("hex");
    return { id: crypto.randomUUID(), outs: { ...inputs, value } };
  },
  async diff(_id, olds, news) {
    return { changes: olds.bytes !== news.bytes, replaces: ["bytes"] };
  },
  async update(_id, olds) {
    return { outs: olds };
  },
  async delete() {},
};

/** A random value in hex, made once and kept in the state: as a secret, unless it is only a name. */
export class RandomToken extends pulumi.dynamic.Resource {
  declare readonly value: pulumi.Output<string>;

  constructor(name: string, args: { bytes?: number; secret?: boolean } = {}, opts: pulumi.CustomResourceOptions = {}) {
    const additionalSecretOutputs = args.secret === false ? [] : ["value"];
    super(provider, name, { bytes: args.bytes ?? 16, value: undefined }, { ...opts, additionalSecretOutputs }, "dialout", "RandomToken");
  }
}
