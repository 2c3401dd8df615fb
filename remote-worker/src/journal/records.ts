import { crc32 } from "node:zlib";
import type { Marks } from "../kill/hunt";
import type { Outcome } from "../exec/outcome";

/** Where the output of an ended command is: in the record, in a file of the journal's folder, or (absent) no longer held. */
export interface StoredStream {
  bytes: number;
  base64?: string;
  file?: string;
}

export type JournalRecord =
  | { t: "started"; key: string; fp: string; marks: Marks }
  | { t: "finished"; key: string; fp: string; outcome: Outcome; stdout: StoredStream; stderr: StoredStream }
  /** The id may be used afresh: a base caller's command that was stopped, or output and outcome given up for age. */
  | { t: "forgotten"; key: string };

/** One line: CRC-32 of the JSON in hex, a blank, the JSON. */
export function encodeRecord(r: JournalRecord): Buffer {
  const json = JSON.stringify(r);
  return Buffer.from(`${crc32(json).toString(16).padStart(8, "0")} ${json}\n`, "utf8");
}

export function decodeRecord(line: string): JournalRecord | undefined {
  const json = line.slice(9);
  if (line[8] !== " " || line.slice(0, 8) !== crc32(json).toString(16).padStart(8, "0")) return undefined;
  try {
    const r = JSON.parse(json) as JournalRecord;
    return ["started", "finished", "forgotten"].includes(r.t) && typeof r.key === "string" ? r : undefined;
  } catch {
    return undefined;
  }
}

export interface Parsed {
  records: { record: JournalRecord; at: number; length: number }[];
  /** Bytes up to the end of the last whole record. */
  good: number;
  /** Lines that are broken although whole lines follow: not a torn write but damage. */
  damaged: number;
}

/** Reads a journal. A broken tail is what a crash in mid-write leaves, and is no damage. */
export function parseJournal(data: Buffer): Parsed {
  const out: Parsed = { records: [], good: 0, damaged: 0 };
  let pending = 0;
  for (let at = 0; at < data.length; ) {
    const nl = data.indexOf(10, at);
    if (nl < 0) break;
    const record = decodeRecord(data.toString("utf8", at, nl));
    if (record) {
      out.records.push({ record, at, length: nl + 1 - at });
      out.good = nl + 1;
      out.damaged += pending;
      pending = 0;
    } else pending++;
    at = nl + 1;
  }
  return out;
}
