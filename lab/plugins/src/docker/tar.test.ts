import { execFileSync } from "node:child_process";
import { Readable } from "node:stream";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { archive, header, streamArchive, type Entry } from "./tar";

const scratch = mkdtempSync(path.join(tmpdir(), "tar-test-"));
afterAll(() => rmSync(scratch, { recursive: true }));

// the reference reader
function listed(bytes: Buffer): string[] {
  const file = path.join(scratch, "a.tar");
  writeFileSync(file, bytes);
  return execFileSync("tar", ["-tvf", file, "--numeric-owner", "--utc", "--quoting-style=literal"], { encoding: "utf8" }).trim().split("\n");
}

test("tar reads modes, owners, sizes and times", () => {
  expect(listed(archive([{ name: "etc/key", mode: 0o400, content: Buffer.from("secret") }, { name: "run.sh", mode: 0o744, content: Buffer.alloc(513) }], 1_700_000_000))).toEqual([
    "-r-------- 0/0               6 2023-11-14 22:13 etc/key",
    "-rwxr--r-- 0/0             513 2023-11-14 22:13 run.sh",
  ]);
});

test("contents come back, whatever their length to the block", () => {
  const sizes = [0, 1, 511, 512, 513, 100_000];
  writeFileSync(path.join(scratch, "b.tar"), archive(sizes.map((size) => ({ name: `f${size}`, mode: 0o644, content: Buffer.alloc(size, size % 251) })), 0));
  execFileSync("tar", ["-xf", "b.tar"], { cwd: scratch });
  for (const size of sizes) expect(readFileSync(path.join(scratch, `f${size}`)).equals(Buffer.alloc(size, size % 251))).toBe(true);
});

test("names that do not fit, and ones beyond ASCII", () => {
  const long = `${"deep/".repeat(40)}ü.txt`;
  const bytes = Buffer.concat([header({ name: long, type: "file", mode: 0o644, size: 0 }), header({ name: "link", type: "symlink", mode: 0o777, target: long }), Buffer.alloc(1024)]);
  const names = listed(bytes).map((line) => line.split(/\d\d:\d\d /)[1]);
  expect(names).toEqual([long, `link -> ${long}`]);
});

test("a pax record counts its own length, across a change of digits", () => {
  // the record's length goes from two to three digits within this range
  const names = Array.from({ length: 50 }, (_, i) => "n".repeat(80 + i));
  const bytes = Buffer.concat([...names.map((name) => header({ name, type: "file", mode: 0o600, size: 0 })), Buffer.alloc(1024)]);
  expect(listed(bytes).map((line) => line.split(" ").at(-1))).toEqual(names);
});

async function collect(entries: (Entry & { open?: () => Readable })[]): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of streamArchive((async function* () { yield* entries; })())) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test("an archive is streamed", async () => {
  const bytes = await collect([{ name: "d", type: "directory", mode: 0o755 }, { name: "d/f", type: "file", mode: 0o644, size: 5, open: () => Readable.from([Buffer.from("he"), Buffer.from("llo")]) }]);
  expect(listed(bytes).map((line) => line.split(" ")[0])).toEqual(["drwxr-xr-x", "-rw-r--r--"]);
});

test("a file that grows while it is read is an error, not a torn archive", async () => {
  await expect(collect([{ name: "f", type: "file", mode: 0o644, size: 2, open: () => Readable.from([Buffer.from("abc")]) }])).rejects.toThrow("f changed while it was read (3 bytes instead of 2)");
});
