export const MAX_LINES = 2000;
export const MAX_BYTES = 50 * 1024;

const size = (s: string) => Buffer.byteLength(s);

/** Cuts at a character border. */
function firstBytes(s: string, bytes: number): string {
  return Buffer.from(s).subarray(0, bytes).toString("utf8").replace(/\uFFFD+$/, "");
}

/** As many whole lines from the start as fit both limits. At least one, even when it has to be cut itself. */
export function head(lines: readonly string[], maxLines = MAX_LINES, maxBytes = MAX_BYTES): { text: string; lines: number; cutLine: boolean } {
  let bytes = 0;
  let n = 0;
  while (n < lines.length && n < maxLines && bytes + size(lines[n]!) + 1 <= maxBytes) bytes += size(lines[n++]!) + 1;
  if (n === 0 && lines.length) return { text: firstBytes(lines[0]!, maxBytes), lines: 1, cutLine: true };
  return { text: lines.slice(0, n).join("\n"), lines: n, cutLine: false };
}

/** As many whole lines from the end as fit, with a notice in front when something is missing. */
export function tail(text: string, maxLines = MAX_LINES, maxBytes = MAX_BYTES): string {
  const lines = text.split("\n");
  let bytes = 0;
  let from = lines.length;
  while (from > 0 && lines.length - from < maxLines && bytes + size(lines[from - 1]!) + 1 <= maxBytes + 1) bytes += size(lines[--from]!) + 1;
  if (from === 0) return text;
  if (from === lines.length) return `[the start of a very long line is left out]\n${Buffer.from(text).subarray(-maxBytes).toString("utf8").replace(/^\uFFFD+/, "")}`;
  return `[${from} earlier lines are left out]\n${lines.slice(from).join("\n")}`;
}

/** Collects output as it comes and keeps only about its last `keep` bytes. */
export class TailBuffer {
  private parts: Buffer[] = [];
  private held = 0;
  total = 0;

  constructor(private readonly keep = MAX_BYTES * 4) {}

  push(chunk: Buffer): void {
    this.parts.push(chunk);
    this.held += chunk.length;
    this.total += chunk.length;
    while (this.held - (this.parts[0]?.length ?? 0) >= this.keep) this.held -= this.parts.shift()!.length;
  }

  text(): string {
    const whole = Buffer.concat(this.parts).toString("utf8");
    return this.total > this.held ? `[${this.total - this.held} earlier bytes are left out]\n${whole}` : whole;
  }
}

export type Decoded = { text: string } | { binary: true };

/** Text only if it really is UTF-8 without NUL: anything else would not survive an edit. */
export function decode(data: Buffer): Decoded {
  if (data.includes(0)) return { binary: true };
  try {
    return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data) };
  } catch {
    return { binary: true };
  }
}
