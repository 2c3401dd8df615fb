/** One thing a prompt asks for, as the tool call that does it. */
export interface Intent {
  tool: "bash" | "read" | "ls" | "find" | "grep" | "write" | "edit";
  input: Record<string, unknown>;
}

const PATH = String.raw`(?:the\s+)?(?:file\s+|folder\s+|directory\s+)?(?:\x60([^\x60\n]+)\x60|"([^"\n]+)"|(\/[^\s\x60"',;]*[^\s\x60"',;.?!)]))`;
const TICKED = String.raw`\x60([^\x60]+)\x60`;

const forms: { pattern: string; groups: number; make(g: (string | undefined)[]): Intent }[] = [
  { pattern: String.raw`(?:run|execute)[^\x60\n]*\n?\x60{3}(?:bash|sh)?\n([\s\S]*?)\n?\x60{3}`, groups: 1, make: ([c]) => ({ tool: "bash", input: { command: c } }) },
  { pattern: String.raw`(?:run|execute)\s+(?:the\s+command\s+)?${TICKED}`, groups: 1, make: ([c]) => ({ tool: "bash", input: { command: c } }) },
  { pattern: String.raw`write\s+${TICKED}\s+(?:in)?to\s+${PATH}`, groups: 4, make: ([content, ...p]) => ({ tool: "write", input: { path: pick(p), content } }) },
  { pattern: String.raw`replace\s+${TICKED}\s+(?:with|by)\s+${TICKED}\s+in\s+${PATH}`, groups: 5, make: ([o, n, ...p]) => ({ tool: "edit", input: { path: pick(p), edits: [{ oldText: o, newText: n }] } }) },
  { pattern: String.raw`(?:grep|search)\s+(?:for\s+)?${TICKED}\s+in\s+${PATH}`, groups: 4, make: ([x, ...p]) => ({ tool: "grep", input: { pattern: x, path: pick(p) } }) },
  { pattern: String.raw`find\s+(?:files\s+)?${TICKED}\s+(?:in|under)\s+${PATH}`, groups: 4, make: ([x, ...p]) => ({ tool: "find", input: { pattern: x, path: pick(p) } }) },
  { pattern: String.raw`list\s+${PATH}`, groups: 3, make: (p) => ({ tool: "ls", input: { path: pick(p) } }) },
  { pattern: String.raw`(?:read|cat|show|print|open)\s+${PATH}`, groups: 3, make: (p) => ({ tool: "read", input: { path: pick(p) } }) },
];
const pick = (groups: (string | undefined)[]) => groups.find((g) => g !== undefined);
const scanner = new RegExp(forms.map((f) => `(\\b${f.pattern})`).join("|"), "gi");

/** At most this many intents of one prompt are followed. */
export const MAX_INTENTS = 16;

/**
 * What the prompt asks for, in its order: run `CMD`, read PATH, list PATH, find `GLOB` in PATH, grep `RE` in PATH,
 * write `TEXT` to PATH, replace `A` with `B` in PATH. Without any of these, a path that is mentioned is read, and a question
 * about the operating system reads /etc/os-release.
 */
export function parseIntents(prompt: string): Intent[] {
  const found: Intent[] = [];
  for (const m of prompt.matchAll(scanner)) {
    let at = 1;
    for (const form of forms) {
      if (m[at] !== undefined) found.push(form.make(m.slice(at + 1, at + 1 + form.groups)));
      at += 1 + form.groups;
    }
    if (found.length >= MAX_INTENTS) break;
  }
  if (found.length) return found;
  const path = /(?:^|[\s"'`(])(\/[^\s"'`),;]*[^\s"'`),;.?!])/.exec(prompt)?.[1];
  if (path) return [{ tool: "read", input: { path } }];
  if (/\b(operating system|which os|what os|distribution)\b/i.test(prompt)) return [{ tool: "read", input: { path: "/etc/os-release" } }];
  return [];
}
