// The rules of .dockerignore: later lines win, `!` takes back, a matched folder covers all that is in it.

export interface Ignore {
  /** @param path relative to the context, with `/` */
  ignores(path: string): boolean;
  /** Whether a `!` rule may bring back something inside an ignored folder. */
  readonly hasExceptions: boolean;
}

interface Rule {
  exception: boolean;
  pattern: RegExp;
}

/** @param always paths that are sent whatever the rules say: the Dockerfile and .dockerignore themselves */
export function parseDockerignore(text: string, always: readonly string[] = []): Ignore {
  const rules = text.split(/\r?\n/).flatMap(toRule);
  return {
    hasExceptions: rules.some((rule) => rule.exception) || always.some((path) => path.includes("/")),
    ignores(path) {
      if (always.includes(path)) return false;
      const steps = path.split("/");
      const prefixes = steps.map((_, i) => steps.slice(0, i + 1).join("/"));
      return rules.reduce((ignored, rule) => (prefixes.some((prefix) => rule.pattern.test(prefix)) ? !rule.exception : ignored), false);
    },
  };
}

function toRule(line: string): Rule[] {
  const bare = line.replace(/^\uFEFF/, "");
  if (bare.startsWith("#")) return [];
  let pattern = bare.trim();
  const exception = pattern.startsWith("!");
  if (exception) pattern = pattern.slice(1).trim();
  pattern = pattern.split("/").filter((step) => step !== "" && step !== ".").join("/");
  return pattern ? [{ exception, pattern: new RegExp(`^${toRegExp(pattern)}$`) }] : [];
}

function toRegExp(pattern: string): string {
  let regexp = "";
  for (let i = 0; i < pattern.length; i++) {
    const rest = pattern.slice(i);
    const range = /^\[(\^?)((?:\\.|[^\]\\])+)\]/.exec(rest);
    if (rest.startsWith("**/")) {
      regexp += "(?:.*/)?";
      i += 2;
    } else if (rest.startsWith("**")) {
      regexp += ".*";
      i += 1;
    } else if (rest.startsWith("*")) regexp += "[^/]*";
    else if (rest.startsWith("?")) regexp += "[^/]";
    else if (range) {
      regexp += `[${range[1]}${range[2]}]`;
      i += range[0].length - 1;
    } else if (rest.startsWith("\\") && rest.length > 1) {
      regexp += literal(rest.charAt(1));
      i += 1;
    } else regexp += literal(rest.charAt(0));
  }
  return regexp;
}

const literal = (char: string): string => char.replace(/[.*+?^${}()|[\]\\/]/, "\\$&");
