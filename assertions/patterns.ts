// Which text tells the two operating systems apart. Decided from the files themselves, read directly, never from a leaf.

export interface Patterns {
  /** Text in the pods' os-release and not in the worker's. */
  pods: string;
  /** Text in the worker's os-release and not in the pods'. */
  remote: string;
}

export type Wanted = Partial<Patterns>;

/** Tried first: what the two public default images say. */
const USUAL: Patterns = { pods: "Alpine", remote: "Red Hat" };
/** Then the values of these keys. */
const KEYS = ["NAME", "VERSION_CODENAME", "PRETTY_NAME", "VERSION_ID", "ID"];
/** Shorter texts turn up anywhere by chance. */
const SHORTEST = 3;

/** KEY=value lines, quotes removed. Lines that are none are left out. */
export function parseOsRelease(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split("\n")) {
    const m = /^([A-Z][A-Z0-9_]*)=(.*)$/.exec(line.trim());
    if (m) fields.set(m[1]!, m[2]!.replace(/^(["'])(.*)\1$/, "$2"));
  }
  return fields;
}

/** In the one file as written, and in the other in no spelling: a model may well ignore case. */
export function tells(pattern: string, own: string, other: string): boolean {
  return pattern.trim().length >= SHORTEST && own.includes(pattern) && !other.toLowerCase().includes(pattern.toLowerCase());
}

/** What is wrong with a pair of patterns for these two files; an empty list when both tell both ways. */
export function patternProblems(patterns: Patterns, podText: string, workerText: string): string[] {
  const side = (name: string, pattern: string, own: string, ownName: string, other: string, otherName: string) => {
    if (pattern.trim().length < SHORTEST) return [`${name} pattern ${JSON.stringify(pattern)} is shorter than ${SHORTEST} characters`];
    if (!own.includes(pattern)) return [`${name} pattern ${JSON.stringify(pattern)} is not in the ${ownName}'s os-release`];
    return tells(pattern, own, other) ? [] : [`${name} pattern ${JSON.stringify(pattern)} is in the ${otherName}'s os-release as well`];
  };
  return [...side("pods", patterns.pods, podText, "pod", workerText, "worker"), ...side("remote", patterns.remote, workerText, "worker", podText, "pod")];
}

function choose(own: string, other: string, usual: string): string | undefined {
  const fields = parseOsRelease(own);
  return [usual, ...KEYS.map((k) => fields.get(k) ?? "")].find((p) => tells(p, own, other));
}

/** The patterns to use: the wanted ones as they are, otherwise the first that tells. Problems say why there are none. */
export function choosePatterns(podText: string, workerText: string, wanted: Wanted = {}): { patterns?: Patterns; problems: string[] } {
  const pods = wanted.pods || choose(podText, workerText, USUAL.pods);
  const remote = wanted.remote || choose(workerText, podText, USUAL.remote);
  if (!pods || !remote) {
    const same = podText.trim() === workerText.trim();
    return { problems: [same ? "pod and worker have the same os-release: no verdict could tell them apart" : `no text tells the ${pods ? "worker" : "pod"} from the other side`] };
  }
  const problems = patternProblems({ pods, remote }, podText, workerText);
  return problems.length ? { problems } : { patterns: { pods, remote }, problems };
}

/** Lines and values that only `own` has: what a reason can quote only when the file was really read. Longest first. */
export function fingerprints(own: string, other: string): string[] {
  const lines = own.split("\n").map((l) => l.trim()).filter((l) => l && !l.startsWith("#"));
  const values = [...parseOsRelease(own).values()];
  const only = [...new Set([...lines, ...values])].filter((t) => t.length > SHORTEST && !other.includes(t));
  return only.sort((a, b) => b.length - a.length);
}

/** Those that nobody writes without having read them: whole lines, and values with a version in them. "not Alpine Linux" is no quote. */
export const unmistakable = (prints: readonly string[]): string[] => prints.filter((t) => t.includes("=") || /\d/.test(t));
