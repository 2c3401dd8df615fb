import { readFileSync } from "node:fs";
import path from "node:path";

/** Everything that is downloaded or pulled, by exact version and, where one is known, digest. The only place for them. */
export interface Versions {
  readonly kindNode: string;
  readonly knative: { readonly version: string; readonly manifests: string[] };
  readonly kourier: { readonly version: string; readonly class: string; readonly service: string; readonly manifests: string[] };
  readonly images: Readonly<Record<"redis" | "runtime" | "pool" | "worker" | "kubectl", string>>;
}

/** The project's folder; scripts that run as a bundle say where it is. */
export const root = process.env.DIALOUT_ROOT ?? path.resolve(__dirname, "..");
export const versions = JSON.parse(readFileSync(path.join(root, "deploy/versions.json"), "utf8")) as Versions;
