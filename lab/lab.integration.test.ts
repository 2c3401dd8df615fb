// The lab's builds as processes: nothing half-made after a kill or a failure, one run at a time. The Go command is a stand-in that compiles
// nothing: it says that it is at work, and ends when the test lets it.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const GO = `#!/bin/bash
[ "$1" = env ] && { echo go1.26.8; exit; }
[ "$1" = build ] || exit 0
echo $$ >> "$STUB/compilers"
echo internal/abi >&2
until [ -e "$STUB/verdict" ]; do sleep 0.05; done
if [ "$(cat "$STUB/verdict")" = bad ]; then echo "main.go:1: this does not compile" >&2; exit 1; fi
while [ "$1" != -o ]; do shift; done
echo program > "$2"
`;

let base: string, home: string, stub: string;
const running: ChildProcess[] = [];
beforeEach(() => {
  base = mkdtempSync(path.join(tmpdir(), "lab-test-"));
  home = path.join(base, "home");
  stub = path.join(base, "stub");
  mkdirSync(stub);
  writeFileSync(path.join(stub, "go"), GO, { mode: 0o755 });
});
afterEach(() => {
  for (const child of running.splice(0)) child.kill("SIGKILL");
  for (const pid of compilers()) if (alive(pid)) process.kill(pid, "SIGKILL");
  rmSync(base, { recursive: true, force: true });
});

function build(): ChildProcess {
  const child = spawn(path.join(__dirname, "lab"), ["tool", "pause"], {
    env: { ...process.env, PATH: `${stub}:${process.env.PATH}`, STUB: stub, LAB_HOME: home, LAB_CACHE: "" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.push(child);
  return child;
}
async function end(child: ChildProcess) {
  let out = "", err = "";
  child.stdout?.on("data", (d) => { out += d; });
  child.stderr?.on("data", (d) => { err += d; });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out: out.trim(), err };
}
async function until(what: string, condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`it did not happen within 60 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
const verdict = (text: "good" | "bad") => writeFileSync(path.join(stub, "verdict"), text);
const compilers = () => (existsSync(path.join(stub, "compilers")) ? readFileSync(path.join(stub, "compilers"), "utf8").trim().split("\n").map(Number) : []);
const alive = (pid: number) => existsSync(`/proc/${pid}/stat`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
const results = () => readdirSync(path.join(home, "bin"));

describe("a build", () => {
  test("that succeeds prints its folder; the next one has nothing to do", async () => {
    verdict("good");
    const first = await end(build());
    expect([first.code, first.err]).toEqual([0, expect.stringContaining("pause: built in")]);
    expect(readFileSync(path.join(first.out, "pause"), "utf8")).toBe("program\n");
    expect(readdirSync(path.join(home, "tmp"))).toEqual([]);
    expect(await end(build())).toEqual({ code: 0, out: first.out, err: "" });
    expect(compilers()).toHaveLength(1);
  });

  test("that fails shows the end of its log, where the log is, and keeps nothing", async () => {
    verdict("bad");
    const { code, err } = await end(build());
    expect([code, err]).toEqual([1, expect.stringMatching(/this does not compile/)]);
    expect(err).toContain(path.join(home, "logs/build-pause.log"));
    expect(results()).toEqual([]);
  });

  test("that is killed leaves nothing half-made; the next run ends what it left running, and succeeds", async () => {
    const killed = build();
    await until("the compiler runs", () => compilers().length === 1);
    killed.kill("SIGKILL");
    await once(killed, "exit");
    expect(alive(compilers()[0] ?? 0)).toBe(true);
    const again = end(build());
    await until("the next compiler runs", () => compilers().length === 2);
    expect(alive(compilers()[0] ?? 0)).toBe(false);
    expect(results()).toEqual([]);
    verdict("good");
    expect(await again).toMatchObject({ code: 0, err: expect.stringContaining("an earlier run was killed") });
  });

  test("that is interrupted ends its compiler and says that it can be continued", async () => {
    const child = build();
    const ended = end(child);
    await until("the compiler runs", () => compilers().length === 1);
    child.kill("SIGTERM");
    expect(await ended).toMatchObject({ code: 130, err: expect.stringContaining("interrupted (SIGTERM); the same command continues") });
    await until("the compiler is gone", () => !alive(compilers()[0] ?? 0));
    expect(results()).toEqual([]);
  });

  test("of the same thing twice at once is one build; the second run waits for the first", async () => {
    const first = end(build());
    await until("the compiler runs", () => compilers().length === 1);
    const waiting = build();
    let seen = "";
    waiting.stderr?.on("data", (d) => { seen += d; });
    const second = end(waiting);
    await until("the second run says that it waits", () => seen.includes("waiting for it"));
    verdict("good");
    expect([(await first).code, (await second).code]).toEqual([0, 0]);
    expect((await first).out).toBe((await second).out);
    expect(compilers()).toHaveLength(1);
  });
});
