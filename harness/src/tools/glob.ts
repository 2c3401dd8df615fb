/**
 * A glob as ripgrep's -g reads it, as a RegExp over a path relative to the folder searched: `*` and `?` stop at slashes, `**`
 * does not, `[a-z]` and `{a,b}` work, and a glob without a slash matches the name at any depth.
 */
export function globRegExp(glob: string): RegExp {
  const anchored = glob.includes("/");
  const body = translate(glob.replace(/^\//, ""));
  return new RegExp(`^${anchored ? "" : "(?:.*/)?"}${body}$`, "s");
}

function translate(glob: string): string {
  let out = "";
  let depth = 0;
  for (let i = 0; i < glob.length; i++) {
    const c = glob[i]!;
    if (c === "*") {
      if (glob[i + 1] !== "*") out += "[^/]*";
      else if (glob[i + 2] === "/") [out, i] = [`${out}(?:.*/)?`, i + 2];
      else [out, i] = [`${out}.*`, i + 1];
    } else if (c === "?") out += "[^/]";
    else if (c === "[") {
      const end = glob.indexOf("]", i + 2);
      if (end < 0) out += "\\[";
      else {
        const set = glob.slice(i + 1, end).replace(/^[!^]/, "^").replace(/[\\[]/g, "\\$&");
        out += `(?!/)[${set}]`;
        i = end;
      }
    } else if (c === "{") [out, depth] = [`${out}(?:`, depth + 1];
    else if (c === "}" && depth > 0) [out, depth] = [`${out})`, depth - 1];
    else if (c === "," && depth > 0) out += "|";
    else if (c === "\\" && i + 1 < glob.length) out += escape(glob[++i]!);
    else out += escape(c);
  }
  if (depth > 0) throw new Error(`'{' without '}' in ${JSON.stringify(glob)}`);
  return out;
}

const escape = (c: string) => c.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
