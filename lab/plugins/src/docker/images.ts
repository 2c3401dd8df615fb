// Finding, pulling and building images.
import type { Call } from "../provider/plugin";
import { UserError, messageOf } from "../provider/errors";
import { EngineError, type Engine } from "./engine";

export interface Image {
  Id: string;
  RepoTags: string[] | null;
  RepoDigests: string[] | null;
}

/** A path segment of the API keeps the slashes of an image's name. */
export const imagePath = (name: string): string => name.split("/").map(encodeURIComponent).join("/");

export function findImage(engine: Engine, name: string, signal?: AbortSignal): Promise<Image | null> {
  return engine.find<Image>(`/images/${imagePath(name)}/json`, { signal });
}

export async function localOrPulled(engine: Engine, name: string, call: Call): Promise<Image> {
  const local = await findImage(engine, name, call.signal);
  if (local) return local;
  try {
    await pull(engine, name, call);
  } catch (error) {
    throw new UserError(`unable to pull image ${name}: ${messageOf(error)}`);
  }
  const pulled = await findImage(engine, name, call.signal);
  if (!pulled) throw new UserError(`unable to find or pull image ${name}`);
  return pulled;
}

async function pull(engine: Engine, name: string, call: Call): Promise<void> {
  call.status(`pulling ${name}`);
  const { repository, reference } = splitName(name);
  type Message = { error?: string; status?: string; id?: string };
  for await (const message of engine.lines<Message>("POST", "/images/create", { query: { fromImage: repository, tag: reference }, signal: call.signal })) {
    if (message.error) throw new EngineError(500, message.error);
    if (message.status) call.status(`${message.id ? `${message.id}: ` : ""}${message.status}`);
  }
}

/** `host:5000/a/b:tag` and `a/b@sha256:…` into what comes before and after; `latest` without either. */
export function splitName(name: string): { repository: string; reference: string } {
  const digest = name.indexOf("@");
  if (digest >= 0) return { repository: name.slice(0, digest), reference: name.slice(digest + 1) };
  const colon = name.indexOf(":", name.lastIndexOf("/") + 1);
  return colon >= 0 ? { repository: name.slice(0, colon), reference: name.slice(colon + 1) } : { repository: name, reference: "latest" };
}

/** The digest under which a registry knows this image; "" for one that was never pushed or pulled. */
export function repoDigest(name: string, image: Image): string {
  const { repository } = splitName(name);
  const familiar = (full: string): string => full.replace(/^(docker\.io\/)?(library\/)?/, "");
  return image.RepoDigests?.find((digest) => familiar(splitName(digest).repository) === familiar(repository)) ?? "";
}
