import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";

/** Sources of a Dockerfile's COPY and ADD lines that come from the build context, as written there. */
export function copiedPaths(dockerfile: string): string[] {
  const lines = dockerfile.replace(/\\\r?\n/g, " ").split("\n");
  const paths = lines.flatMap((line) => {
    const m = /^\s*(?:COPY|ADD)\s+(.*)$/i.exec(line);
    if (!m || /--from=/.test(m[1]!)) return [];
    const rest = m[1]!.replace(/--\w+(=\S+)?\s+/g, "").trim();
    const words = rest.startsWith("[") ? (JSON.parse(rest) as string[]) : rest.split(/\s+/);
    return words.slice(0, -1);
  });
  return [...new Set(paths)].sort();
}

function files(dir: string, relative: string): string[] {
  const full = path.join(dir, relative);
  if (!statSync(full).isDirectory()) return [relative];
  return readdirSync(full).sort().flatMap((f) => files(dir, path.join(relative, f)));
}

/**
 * 12 hex digits that change exactly when an image may: with its Dockerfile, its build arguments, and the bytes and mode of every
 * file it copies. Files of the context that are not copied do not count. Throws when one is missing.
 */
export function contentHash(context: string, buildArgs: Readonly<Record<string, string>>): string {
  const dockerfile = readFileSync(path.join(context, "Dockerfile"), "utf8");
  const hash = createHash("sha256");
  const add = (...parts: (string | Buffer)[]) => parts.forEach((p) => hash.update(`${p.length}:`).update(p));
  add(dockerfile);
  for (const [k, v] of Object.entries(buildArgs).sort()) add(k, v);
  for (const file of copiedPaths(dockerfile).flatMap((p) => files(context, p))) {
    const full = path.join(context, file);
    add(file, String(statSync(full).mode & 0o111), readFileSync(full));
  }
  return hash.digest("hex").slice(0, 12);
}
