import { afterEach, beforeEach, expect, it } from "vitest";
import { bash } from "./bash";
import { scratch, type Scratch } from "./testkit";
import { MAX_BYTES } from "./text";

let box: Scratch;
beforeEach(() => void (box = scratch()));
afterEach(() => box.remove());

it("runs in the working directory and returns both streams", async () => {
  expect(await bash(box, { command: "pwd; echo err >&2" })).toMatch(new RegExp(`^(${box.cwd}\nerr|err\n${box.cwd})$`));
  expect(box.commands).toEqual([`cd '${box.cwd}' && pwd; echo err >&2`]);
});

it("an exit status other than 0 is an error that carries the output", async () => {
  await expect(bash(box, { command: "echo partial; exit 7" })).rejects.toThrow("partial\n\nCommand exited with code 7");
});

it("a command that prints nothing says so", async () => {
  expect(await bash(box, { command: "true" })).toBe("(no output)");
});

it("a timeout keeps what was printed", async () => {
  await expect(bash(box, { command: "echo before; sleep 30", timeout: 0.3 })).rejects.toThrow("before\n\nCommand timed out (timeout:0.3) and was killed");
});

it("shows the end of long output, at most 50 KiB", async () => {
  const text = await bash(box, { command: "seq 1 100000" });
  expect(text).toMatch(/^\[\d+ earlier lines are left out\]\n/);
  expect(text).toMatch(/\n100000$/);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_BYTES + 100);
});

it("a signal's end is told", async () => {
  await expect(bash(box, { command: "kill -KILL $$" })).rejects.toThrow("Command was killed by a signal");
});
