/** The elements of a review task, as far as the prompt names them. */
export interface LeafTask {
  itemId: string;
  file: string;
  pattern: string;
  /** The prompt asks for an approval first. */
  approval: boolean;
}

/** A value is written as a JSON string, in quotes or backticks, or bare to the end of its line. */
function value(text: string): string {
  const quoted = /^\s*("(?:[^"\\]|\\.)*")/.exec(text)?.[1];
  if (quoted) {
    try {
      return JSON.parse(quoted) as string;
    } catch {
      return quoted.slice(1, -1);
    }
  }
  return (/^\s*`([^`\n]*)`/.exec(text)?.[1] ?? /^\s*'([^'\n]*)'/.exec(text)?.[1] ?? /^[^\n]*/.exec(text)![0]).trim();
}

function field(prompt: string, label: RegExp): string | undefined {
  const m = label.exec(prompt);
  const v = m && value(prompt.slice(m.index + m[0].length));
  return v || undefined;
}

/**
 * Reads item id, file and pattern out of a review prompt: labelled lines (`Item id: "i1"`) first, then the loose forms other
 * harnesses use. Undefined when one of the three is missing, i.e. when this is not a review task.
 */
export function parseLeafPrompt(prompt: string): LeafTask | undefined {
  const itemId = field(prompt, /^\W*item[ _]?id\W*:\**/im) ?? field(prompt, /\bitem[ _]id\b(?:\s+is)?\s*[:=]?(?=\s*["'`])/i);
  const file = field(prompt, /^\W*(?:file|path)\W*:\**/im) ?? /(?:^|[\s"'`(])(\/[^\s"'`),;]+)/.exec(prompt)?.[1];
  const pattern = field(prompt, /^\W*pattern\W*:\**/im) ?? field(prompt, /\bpattern\b(?:\s+is)?\s*[:=]?(?=\s*["'`])/i);
  if (!itemId || !file || !pattern) return undefined;
  return { itemId, file, pattern, approval: /\brequest_approval\b/.test(prompt) };
}
