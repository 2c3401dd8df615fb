import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { refuse } from "./errors";
import { type KubeObject } from "./kube";
import { parseManifest } from "./knative-manifests";
import { root } from "./versions";

const cacheDir = () => path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), ".cache"), "dialout", "manifests");

/**
 * Objects of the manifests in `sources`: paths (relative ones from the project's folder) or URLs. A URL names a fixed release, so it is
 * fetched once and then taken from ~/.cache/dialout/manifests. `setting` is the config key to name when one cannot be had.
 */
export async function readManifests(sources: readonly string[], setting: string, cache = cacheDir()): Promise<KubeObject[]> {
  const parts = await Promise.all(sources.map((s) => (/^https?:\/\//.test(s) ? download(s, setting, cache) : readLocal(s, setting))));
  return parts.flat();
}

function readLocal(file: string, setting: string): KubeObject[] {
  let text: string;
  try {
    text = readFileSync(path.resolve(root, file), "utf8");
  } catch (e) {
    throw refuse("setting", `${setting} names ${file}, which cannot be read (${(e as NodeJS.ErrnoException).code}). Set it: pulumi config set --path '${setting}[0]' PATH`);
  }
  return parsed(text, file, setting);
}

function parsed(text: string, source: string, setting: string): KubeObject[] {
  try {
    return parseManifest(text, source);
  } catch (e) {
    throw refuse("setting", `${setting}: ${(e as Error).message}`);
  }
}

async function download(url: string, setting: string, cache: string): Promise<KubeObject[]> {
  const kept = path.join(cache, `${createHash("sha256").update(url).digest("hex").slice(0, 16)}.yaml`);
  try {
    return parseManifest(readFileSync(kept, "utf8"), url);
  } catch {
    // not there yet, or not whole
  }
  const advice = `Check the network and proxy, or name a copy: pulumi config set --path '${setting}[0]' PATH`;
  let text: string;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(60_000) });
    if (!response.ok) throw refuse("environment", `${url} answered ${response.status}. ${advice}`);
    text = await response.text();
  } catch (e) {
    if (e instanceof Error && /^dialout\[/.test(e.message)) throw e;
    throw refuse("environment", `${url} cannot be fetched (${((e as Error).cause as Error | undefined)?.message ?? (e as Error).message}). ${advice}`);
  }
  const objects = parsed(text, url, setting);
  mkdirSync(cache, { recursive: true });
  const half = `${kept}.${process.pid}.tmp`;
  writeFileSync(half, text);
  renameSync(half, kept);
  return objects;
}
