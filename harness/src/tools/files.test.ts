import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { edit, ls, read, write } from "./files";
import { scratch, type Scratch } from "./testkit";

let box: Scratch;
beforeEach(() => void (box = scratch()));
afterEach(() => box.remove());

describe("read", () => {
  it("returns the file as it is", async () => {
    writeFileSync(box.path("a b'c.txt"), "one\ntwo ü\n");
    expect(await read(box, { path: "a b'c.txt" })).toBe("one\ntwo ü\n");
  });

  it("runs what the contract names, in that order", async () => {
    writeFileSync(box.path("f"), "x");
    await read(box, { path: "f" });
    const f = `'${box.path("f")}'`;
    expect(box.commands).toEqual([`test -r ${f}`, `file --mime-type -b ${f}`, `cat ${f}`]);
  });

  it("shows a window and says where to go on", async () => {
    writeFileSync(box.path("f"), "1\n2\n3\n4\n5\n");
    expect(await read(box, { path: "f", offset: 2, limit: 2 })).toBe("2\n3\n\n[lines 2-3 of 5; use offset=4 to continue]");
  });

  it("cuts long files at 2000 lines and names the next one", async () => {
    writeFileSync(box.path("f"), Array.from({ length: 2500 }, (_, i) => `line ${i + 1}`).join("\n"));
    expect(await read(box, { path: "f" })).toMatch(/line 2000\n\n\[lines 1-2000 of 2500; use offset=2001 to continue\]$/);
    expect(await read(box, { path: "f", offset: 2001 })).toMatch(/^line 2001\n[\s\S]*line 2500$/);
  });

  it("cuts a line that is too long on its own", async () => {
    writeFileSync(box.path("f"), `${"x".repeat(60_000)}\nend\n`);
    const text = await read(box, { path: "f" });
    expect(text).toMatch(/was cut/);
    expect(text).toMatch(/use offset=2 to continue\]$/);
  });

  it("names a file that is missing, in the contract's words", async () => {
    await expect(read(box, { path: "/no/such" })).rejects.toThrow("File not readable in pod: /no/such");
  });

  it("reports cat's own failure instead of an empty file", async () => {
    mkdirSync(box.path("dir"));
    await expect(read(box, { path: "dir" })).rejects.toThrow(/cannot read .*Is a directory/);
  });

  it("refuses what is not text", async () => {
    writeFileSync(box.path("f"), Buffer.from([0x61, 0, 0x62]));
    await expect(read(box, { path: "f" })).rejects.toThrow(/is not text \(3 bytes/);
  });

  it("refuses an offset beyond the end, and takes an empty file", async () => {
    writeFileSync(box.path("f"), "1\n");
    await expect(read(box, { path: "f", offset: 9 })).rejects.toThrow(/has 1 lines/);
    writeFileSync(box.path("empty"), "");
    expect(await read(box, { path: "empty" })).toBe("");
  });
});

describe("write", () => {
  it("makes folders and keeps every byte", async () => {
    const content = "a'b\"$x `id`\n\\ ü\u0001\r\n";
    await write(box, { path: "d e/f/g.txt", content });
    expect(readFileSync(box.path("d e/f/g.txt"), "utf8")).toBe(content);
  });

  it("takes a megabyte", async () => {
    const content = "0123456789abcdef".repeat(65_536);
    await write(box, { path: "big", content });
    expect(readFileSync(box.path("big"), "utf8")).toBe(content);
  });

  it("says why it could not", async () => {
    writeFileSync(box.path("f"), "");
    await expect(write(box, { path: "f/x", content: "" })).rejects.toThrow(/cannot write .*f\/x/);
  });
});

describe("edit", () => {
  it("replaces exact text and leaves the rest, CRLF included", async () => {
    writeFileSync(box.path("f"), "\ufeffone\r\ntwo\r\nthree\r\n");
    await edit(box, { path: "f", edits: [{ oldText: "one\ntwo", newText: "1\n2" }, { oldText: "three", newText: "$&" }] });
    expect(readFileSync(box.path("f"), "utf8")).toBe("\ufeff1\r\n2\r\n$&\r\n");
  });

  it("changes nothing when one replacement does not fit", async () => {
    writeFileSync(box.path("f"), "one two one\n");
    await expect(edit(box, { path: "f", edits: [{ oldText: "two", newText: "2" }, { oldText: "one", newText: "1" }] })).rejects.toThrow(/edit 2 occurs more than once.*Nothing was changed/);
    expect(readFileSync(box.path("f"), "utf8")).toBe("one two one\n");
  });

  it("does not touch a file that is not text", async () => {
    writeFileSync(box.path("f"), Buffer.from([0x61, 0xff]));
    await expect(edit(box, { path: "f", edits: [{ oldText: "a", newText: "b" }] })).rejects.toThrow(/is not text/);
    expect(readFileSync(box.path("f"))).toEqual(Buffer.from([0x61, 0xff]));
  });
});

describe("ls", () => {
  it("lists in byte order, marks folders, shows dot files", async () => {
    mkdirSync(box.path("b"));
    writeFileSync(box.path("a"), "");
    writeFileSync(box.path(".h"), "");
    writeFileSync(box.path("B"), "");
    expect(await ls(box, {})).toBe(".h\nB\na\nb/");
    expect(await ls(box, { path: "b" })).toBe("(empty directory)");
    expect(await ls(box, { limit: 1 })).toMatch(/^\.h\n\n\[3 more entries/);
  });

  it("tells missing from not a folder", async () => {
    writeFileSync(box.path("f"), "");
    await expect(ls(box, { path: "nope" })).rejects.toThrow(/Path not found in pod: .*nope/);
    await expect(ls(box, { path: "f" })).rejects.toThrow(/Not a directory/);
  });
});
