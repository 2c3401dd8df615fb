import type { KillReport } from "./types";

/** Bytes that are kept of what kubectl itself says. */
const NOISE_CAP = 4096;

/** Cuts a byte stream at the first occurrence of `mark`, however it is split into chunks. Holds back no more than a possible start of it. */
export class Splitter {
  private tail: Buffer = Buffer.alloc(0);
  found = false;

  constructor(private readonly mark: Buffer, private readonly before: (data: Buffer) => void, private readonly after: (data: Buffer) => void) {}

  push(chunk: Buffer): void {
    if (this.found) return this.after(chunk);
    const data = this.tail.length ? Buffer.concat([this.tail, chunk]) : chunk;
    const at = data.indexOf(this.mark);
    if (at < 0) {
      const keep = this.possibleStart(data);
      this.tail = data.subarray(data.length - keep);
      return this.emit(this.before, data.subarray(0, data.length - keep));
    }
    this.found = true;
    this.tail = Buffer.alloc(0);
    this.emit(this.before, data.subarray(0, at));
    this.emit(this.after, data.subarray(at + this.mark.length));
  }

  /** The stream has ended: what looked like the start of the mark was not one. */
  flush(): void {
    this.emit(this.before, this.tail);
    this.tail = Buffer.alloc(0);
  }

  private emit(to: (data: Buffer) => void, data: Buffer): void {
    if (data.length) to(data);
  }

  private possibleStart(data: Buffer): number {
    for (let n = Math.min(this.mark.length - 1, data.length); n > 0; n--) {
      if (data.subarray(data.length - n).equals(this.mark.subarray(0, n))) return n;
    }
    return 0;
  }
}

/** The first few KiB of a text stream. */
export class Noise {
  private text = "";

  add(data: Buffer): void {
    if (this.text.length < NOISE_CAP) this.text += data.toString("utf8").slice(0, NOISE_CAP - this.text.length);
  }

  toString(): string {
    return this.text.trim();
  }
}

/** `found killed remaining opaque`, as the pod-side script prints it; undefined for anything else. */
export function parseKill(text: string): KillReport | undefined {
  const m = /^(\d+) (\d+) (\d+) (\d+)$/.exec(text.trim());
  if (!m) return undefined;
  const [found, killed, remaining, opaque] = m.slice(1).map(Number) as [number, number, number, number];
  const doubts = [
    ...(remaining ? [`${remaining} processes are still there`] : []),
    ...(opaque ? [`${opaque} processes of another user could not be inspected`] : []),
  ];
  return { found, killed, remaining, verified: doubts.length === 0, detail: doubts.length ? `unverified: ${doubts.join("; ")}` : "" };
}

/** A status frame's text `<exit status> <kill report or nothing>`; undefined while the line is incomplete or when it is none. */
export function parseStatus(text: string): { exitCode: number; late: KillReport | undefined } | undefined {
  const m = /^(\d{1,3}) ([\d ]*)\n/.exec(text);
  return m ? { exitCode: Number(m[1]), late: parseKill(m[2] as string) } : undefined;
}
