// docker:index/tag:Tag: a second name for an image. As in the genuine plugin it stays when the resource goes.
import { diffProps } from "../provider/diff";
import { UserError, messageOf } from "../provider/errors";
import type { Call, Resource } from "../provider/plugin";
import { checkInputs, givenOutputs, planOutputs, type Fields } from "../provider/schema";
import type { Props } from "../provider/values";
import type { Engine } from "./engine";
import { findImage, imagePath, splitName } from "./images";

export const TAG = "docker:index/tag:Tag";

export const TAG_FIELDS: Fields = {
  sourceImage: { type: "string", required: true, replace: true },
  targetImage: { type: "string", required: true, replace: true },
  tagTriggers: { type: "list", replace: true, unset: null },
  sourceImageId: { type: "string", output: true },
};

export class Tag implements Resource {
  constructor(private readonly engine: () => Engine) {}

  check(olds: Props, news: Props, name: string, seed: Uint8Array): ReturnType<Resource["check"]> {
    return checkInputs(TAG_FIELDS, olds, news, { plugin: "docker", type: TAG, name, seed });
  }

  diff(olds: Props, news: Props): ReturnType<Resource["diff"]> {
    return { changes: diffProps(TAG_FIELDS, olds, news), deleteFirst: false };
  }

  plan(inputs: Props, olds?: Props): Props {
    return planOutputs(TAG_FIELDS, inputs, olds);
  }

  async create(inputs: Props, call: Call): Promise<{ id: string; outputs: Props }> {
    const engine = this.engine();
    const [source, target] = [String(inputs.sourceImage), String(inputs.targetImage)];
    const { repository, reference } = splitName(target);
    const id = `${source}.${target}`;
    try {
      await engine.bytes("POST", `/images/${imagePath(source)}/tag`, { query: { repo: repository, tag: reference }, signal: call.signal });
    } catch (error) {
      throw new UserError(`failed to create docker tag: ${messageOf(error)}`);
    }
    const image = await findImage(engine, source, call.signal);
    return { id, outputs: { ...givenOutputs(TAG_FIELDS, inputs), sourceImageId: image?.Id ?? null, id } };
  }

  read(id: string, state: Props): Promise<{ id: string; outputs: Props }> {
    return Promise.resolve({ id, outputs: state });
  }

  update(_id: string, olds: Props, news: Props): Promise<Props> {
    return Promise.resolve({ ...olds, ...givenOutputs(TAG_FIELDS, news) });
  }

  delete(): Promise<void> {
    return Promise.resolve();
  }
}
