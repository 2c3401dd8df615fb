// Writes tar archives (ustar, with pax records for what does not fit).
import type { Readable } from "node:stream";

export interface Entry {
  /** Path inside the archive, with `/`, without a leading one. */
  name: string;
  type: "file" | "directory" | "symlink";
  /** Permission bits. */
  mode: number;
  /** Bytes of a file. */
  size?: number;
  /** Where a symlink points. */
  target?: string;
  /** Modification time in seconds since 1970. */
  mtime?: number;
}

const BLOCK = 512;
const TYPES = { file: "0", symlink: "2", directory: "5" } as const;
// The largest size that eleven octal digits hold.
const MAX_SIZE = 8 ** 11 - 1;
const NAME_BYTES = 100;

/** The header blocks of one entry. The owner is root, as with the Docker CLI. */
export function header(entry: Entry): Buffer {
  const name = entry.type === "directory" ? `${entry.name}/` : entry.name;
  const long: Record<string, string> = {};
  if (Buffer.byteLength(name) > NAME_BYTES) long.path = name;
  if (Buffer.byteLength(entry.target ?? "") > NAME_BYTES) long.linkpath = entry.target ?? "";
  if ((entry.size ?? 0) > MAX_SIZE) long.size = String(entry.size);
  const plain = block(name, TYPES[entry.type], entry.mode, "size" in long || entry.type !== "file" ? 0 : (entry.size ?? 0), entry.mtime ?? 0, entry.target ?? "");
  if (Object.keys(long).length === 0) return plain;
  const records = Buffer.from(Object.entries(long).map(([key, value]) => paxRecord(key, value)).join(""));
  return Buffer.concat([block("pax", "x", 0o644, records.length, 0, ""), records, padding(records.length), plain]);
}

/** What follows `size` bytes of content up to the next block. */
export function padding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

export const END = Buffer.alloc(2 * BLOCK);

/** A whole archive of files in memory. */
export function archive(files: readonly { name: string; mode: number; content: Buffer }[], mtime: number): Buffer {
  return Buffer.concat([
    ...files.flatMap(({ name, mode, content }) => [header({ name, type: "file", mode, mtime, size: content.length }), content, padding(content.length)]),
    END,
  ]);
}

/** An archive as it is read. A file that changes its size meanwhile is an error: the archive would be torn. */
export async function* streamArchive(entries: AsyncIterable<Entry & { open?: () => Readable }>): AsyncGenerator<Buffer> {
  for await (const entry of entries) {
    yield header(entry);
    if (!entry.open) continue;
    let sent = 0;
    for await (const chunk of entry.open()) {
      sent += (chunk as Buffer).length;
      yield chunk as Buffer;
    }
    if (sent !== (entry.size ?? 0)) throw new Error(`${entry.name} changed while it was read (${sent} bytes instead of ${entry.size})`);
    yield padding(sent);
  }
  yield END;
}

function block(name: string, type: string, mode: number, size: number, mtime: number, target: string): Buffer {
  const bytes = Buffer.alloc(BLOCK);
  const octal = (value: number, offset: number, length: number): void => {
    bytes.write(`${value.toString(8).padStart(length - 1, "0")}\0`, offset, length, "latin1");
  };
  Buffer.from(name).copy(bytes, 0, 0, NAME_BYTES);
  octal(mode & 0o7777, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(mtime, 136, 12);
  bytes.write("        ", 148, 8, "latin1");
  bytes.write(type, 156, 1, "latin1");
  Buffer.from(target).copy(bytes, 157, 0, NAME_BYTES);
  bytes.write("ustar\x0000", 257, 8, "latin1");
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, 8, "latin1");
  return bytes;
}

// "LENGTH KEY=VALUE\n", where LENGTH counts itself.
function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const bytes = Buffer.byteLength(rest);
  let length = bytes + 1;
  while (String(length).length + bytes !== length) length = String(length).length + bytes;
  return `${length}${rest}`;
}
