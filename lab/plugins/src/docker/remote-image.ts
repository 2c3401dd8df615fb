// docker:index/remoteImage:RemoteImage: an image that is found, pulled or built.
import { diffProps } from "../provider/diff";
import { UserError, messageOf } from "../provider/errors";
import type { Call, Resource } from "../provider/plugin";
import { checkInputs, givenOutputs, planOutputs, type Field, type Fields } from "../provider/schema";
import type { Props } from "../provider/values";
import { buildImage } from "./build";
import { EngineError, type Engine } from "./engine";
import { findImage, imagePath, localOrPulled, repoDigest, type Image } from "./images";

export const REMOTE_IMAGE = "docker:index/remoteImage:RemoteImage";

const text: Field = { type: "string", unset: "" };

export const REMOTE_IMAGE_FIELDS: Fields = {
  name: { type: "string", required: true, replace: true },
  build: {
    type: "object",
    replace: true,
    fields: {
      context: { ...text, required: true },
      dockerfile: { ...text, default: "Dockerfile" },
      buildArgs: { type: "map" },
      labels: { type: "map" },
      tags: { type: "list" },
      target: text,
      platform: text,
      networkMode: text,
      extraHosts: { type: "list" },
      noCache: { type: "bool" },
      pullParent: { type: "bool" },
      forceRemove: { type: "bool" },
      remove: { type: "bool", default: true, replace: false },
      // the same builder either way
      useLegacyBuilder: { type: "bool" },
    },
  },
  triggers: { type: "map", replace: true },
  pullTriggers: { type: "set", replace: true, unset: null },
  forceRemove: { type: "bool" },
  keepLocally: { type: "bool" },
  imageId: { type: "string", output: true },
  repoDigest: { type: "string", output: true },
};

export class RemoteImage implements Resource {
  constructor(private readonly engine: () => Engine) {}

  check(olds: Props, news: Props, name: string, seed: Uint8Array): ReturnType<Resource["check"]> {
    return checkInputs(REMOTE_IMAGE_FIELDS, olds, news, { plugin: "docker", type: REMOTE_IMAGE, name, seed });
  }

  diff(olds: Props, news: Props): ReturnType<Resource["diff"]> {
    return { changes: diffProps(REMOTE_IMAGE_FIELDS, olds, news), deleteFirst: false };
  }

  plan(inputs: Props, olds?: Props): Props {
    return planOutputs(REMOTE_IMAGE_FIELDS, inputs, olds);
  }

  async create(inputs: Props, call: Call): Promise<{ id: string; outputs: Props }> {
    const engine = this.engine();
    if (inputs.build) await buildImage(engine, String(inputs.name), inputs.build as Props, call);
    return this.described(await this.present(engine, inputs, call), inputs);
  }

  async read(_id: string, state: Props, _inputs: Props, call: Call): Promise<{ id: string; outputs: Props } | undefined> {
    const image = await findImage(this.engine(), String(state.name), call.signal);
    return image ? { id: idOf(image, state), outputs: { ...state, ...found(image, state) } } : undefined;
  }

  async update(_id: string, olds: Props, news: Props, call: Call): Promise<Props> {
    const { outputs } = this.described(await this.present(this.engine(), news, call), news);
    return { ...olds, ...outputs };
  }

  /** By name, as the genuine plugin does: whatever bears the name by then loses it. So names are best made from the content. */
  async delete(_id: string, state: Props, call: Call): Promise<void> {
    if (state.keepLocally === true) return;
    const engine = this.engine();
    const name = String(state.name);
    try {
      await engine.bytes("DELETE", `/images/${imagePath(name)}`, { query: { force: state.forceRemove === true }, signal: call.signal });
    } catch (error) {
      if (error instanceof EngineError && error.status === 404) return;
      const inUse = error instanceof EngineError && error.status === 409;
      throw new UserError(`Unable to remove Docker image ${name}: ${messageOf(error)}${inUse ? " (remove what uses it: docker ps -a; or set keepLocally or forceRemove)" : ""}`);
    }
  }

  private async present(engine: Engine, inputs: Props, call: Call): Promise<Image> {
    return localOrPulled(engine, String(inputs.name), call).catch((error: unknown) => {
      throw new UserError(`Unable to read Docker image into resource: ${messageOf(error)}`);
    });
  }

  private described(image: Image, inputs: Props): { id: string; outputs: Props } {
    return { id: idOf(image, inputs), outputs: { ...givenOutputs(REMOTE_IMAGE_FIELDS, inputs), ...found(image, inputs) } };
  }
}

const idOf = (image: Image, { name }: Props): string => `${image.Id}${String(name)}`;
const found = (image: Image, { name }: Props): Props => ({ imageId: image.Id, repoDigest: repoDigest(String(name), image), id: `${image.Id}${String(name)}` });
