// What a program's node_modules say about plugins and dependencies.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";

export interface Package {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  pulumi?: { resource?: boolean; name?: string; version?: string; server?: string };
}

export interface PluginNeed {
  name: string;
  /** With a leading `v`. */
  version: string;
  server: string;
}

/** Plugins of all installed packages that say they have one, sorted by name. */
export function requiredPlugins(program: string): PluginNeed[] {
  const needs = new Map<string, PluginNeed>();
  for (const folder of moduleFolders(program)) {
    for (const found of installed(folder)) {
      const need = pluginOf(found);
      // the nearest node_modules wins, as it does for `require`
      if (need && !needs.has(need.name)) needs.set(need.name, need);
    }
  }
  return [...needs.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function pluginOf({ name, version, pulumi }: Package): PluginNeed | undefined {
  if (pulumi?.resource !== true) return undefined;
  const asked = pulumi.version ?? version;
  return {
    name: pulumi.name ?? name.replace(/^@pulumi\//, "").replace(/^@/, ""),
    version: asked.startsWith("v") ? asked : `v${asked}`,
    server: pulumi.server ?? "",
  };
}

/** Direct dependencies with the versions installed, those that are not installed left out. */
export function programDependencies(program: string): { name: string; version: string }[] {
  const manifest = readPackage(program);
  const names = Object.keys({ ...manifest?.dependencies, ...manifest?.devDependencies }).sort();
  return names.flatMap((name) => {
    const version = moduleFolders(program).map((folder) => readPackage(path.join(folder, name))?.version).find((one) => one !== undefined);
    return version ? [{ name, version }] : [];
  });
}

/** node_modules of the program's folder and of all above it, nearest first. */
export function moduleFolders(program: string): string[] {
  const folders: string[] = [];
  for (let folder = path.resolve(program); ; folder = path.dirname(folder)) {
    const modules = path.join(folder, "node_modules");
    if (existsSync(modules)) folders.push(modules);
    if (folder === path.dirname(folder)) return folders;
  }
}

function installed(folder: string): Package[] {
  const names = readdirSync(folder).flatMap((name) => {
    if (name.startsWith(".")) return [];
    return name.startsWith("@") ? readdirSync(path.join(folder, name)).map((inner) => `${name}/${inner}`) : [name];
  });
  return names.flatMap((name) => readPackage(path.join(folder, name)) ?? []);
}

// A package that cannot be read needs no plugin; npm is the one to complain about it.
function readPackage(folder: string): Package | undefined {
  try {
    const parsed = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")) as Package;
    return typeof parsed.name === "string" && typeof parsed.version === "string" || parsed.dependencies || parsed.devDependencies ? parsed : undefined;
  } catch {
    return undefined;
  }
}
