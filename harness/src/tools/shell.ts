import path from "node:path";

/** Single-quote shell quoting: the result is one word that means exactly `s`. Throws on NUL, which no argument can hold. */
export function quote(s: string): string {
  if (s.includes("\0")) throw new Error("a NUL byte cannot be part of a command");
  return `'${s.replaceAll("'", `'\\''`)}'`;
}

/**
 * Where a path the model named is in the sandbox: an absolute path under the harness's own working directory is moved under
 * the sandbox's, other absolute paths stay, relative ones start at the sandbox's working directory.
 */
export function sandboxPath(asked: string, harnessCwd: string, sandboxCwd: string): string {
  const p = path.posix.normalize(asked);
  if (!p.startsWith("/")) return path.posix.resolve(sandboxCwd, p);
  if (harnessCwd !== "/" && (p === harnessCwd || p.startsWith(`${harnessCwd}/`))) {
    return path.posix.join(sandboxCwd, p.slice(harnessCwd.length));
  }
  return p;
}
