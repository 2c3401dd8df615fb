// The build context: a folder as a tar archive, less what .dockerignore leaves out.
import { createReadStream, readFileSync, readdirSync, readlinkSync, statSync, lstatSync } from "node:fs";
import path from "node:path";
import { Readable } from "node:stream";
import { UserError } from "../provider/errors";
import { parseDockerignore, type Ignore } from "./dockerignore";
import { streamArchive, type Entry } from "./tar";

type Item = Entry & { open?: () => Readable };

/** @param dockerfile relative to the context */
export function contextArchive(folder: string, dockerfile: string): Readable {
  const root = path.resolve(folder);
  if (!statSync(root, { throwIfNoEntry: false })?.isDirectory()) throw new UserError(`build context '${folder}' is not a folder (looked at ${root})`);
  if (!statSync(path.join(root, dockerfile), { throwIfNoEntry: false })?.isFile()) throw new UserError(`build context '${folder}' has no file '${dockerfile}' (build.dockerfile, relative to the context)`);
  const ignore = parseDockerignore(readIgnoreFile(root), [dockerfile, ".dockerignore"]);
  return Readable.from(streamArchive(items(root, "", ignore)));
}

function readIgnoreFile(root: string): string {
  try {
    return readFileSync(path.join(root, ".dockerignore"), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw new UserError(`cannot read ${path.join(root, ".dockerignore")}: ${(error as Error).message}`);
  }
}

async function* items(root: string, folder: string, ignore: Ignore): AsyncGenerator<Item> {
  for (const base of readdirSync(path.join(root, folder)).sort()) {
    const name = folder ? `${folder}/${base}` : base;
    const full = path.join(root, name);
    const ignored = ignore.ignores(name);
    const stat = lstatSync(full);
    const mtime = Math.max(0, Math.floor(stat.mtimeMs / 1000));
    if (stat.isDirectory()) {
      if (!ignored) yield { name, type: "directory", mode: stat.mode, mtime };
      if (!ignored || ignore.hasExceptions) yield* items(root, name, ignore);
    } else if (ignored) continue;
    else if (stat.isSymbolicLink()) yield { name, type: "symlink", mode: 0o777, mtime, target: readlinkSync(full) };
    else if (stat.isFile()) yield { name, type: "file", mode: stat.mode, mtime, size: stat.size, open: () => createReadStream(full) };
    // sockets and the like have no place in an image
  }
}
