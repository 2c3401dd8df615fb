export interface Edit {
  oldText: string;
  newText: string;
}

/**
 * Applies replacements to the original text, each of which must match exactly once and not overlap another. A file with
 * CRLF line ends takes edits written with LF, and keeps its CRLF.
 */
export function applyEdits(original: string, edits: readonly Edit[]): { text: string } | { problem: string } {
  if (!edits.length) return { problem: "no edit given" };
  const crlf = original.includes("\r\n");
  const adapt = (s: string) => (crlf ? s.replace(/\r?\n/g, "\r\n") : s);
  const spans: { start: number; end: number; text: string; n: number }[] = [];
  for (const [i, e] of edits.entries()) {
    const label = edits.length === 1 ? "oldText" : `oldText of edit ${i + 1}`;
    const old = adapt(e.oldText);
    if (old === "") return { problem: `${label} is empty` };
    const start = original.indexOf(old);
    if (start < 0) return { problem: `${label} was not found; it must match exactly, blanks and line breaks included` };
    if (original.indexOf(old, start + 1) >= 0) return { problem: `${label} occurs more than once; add more of its surroundings` };
    spans.push({ start, end: start + old.length, text: adapt(e.newText), n: i + 1 });
  }
  spans.sort((a, b) => a.start - b.start);
  let text = "";
  let at = 0;
  for (const span of spans) {
    if (span.start < at) return { problem: `edit ${span.n} overlaps another one` };
    text += original.slice(at, span.start) + span.text;
    at = span.end;
  }
  text += original.slice(at);
  return text === original ? { problem: "the edit changes nothing" } : { text };
}
