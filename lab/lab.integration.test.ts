// The lab's builds, on the smallest recipe (a program without dependencies): nothing half-made after a kill, one run at a time.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";

const hasGo = spawnSync("go", ["version"]).status === 0;
const home = mkdtempSync(path.join(tmpdir(), "lab-test-"));
const env = { ...process.env, LAB_HOME: home, LAB_CACHE: "" };
afterAll(() => rmSync(home, { recursive: true, force: true }));

function buildPause(): ChildProcess {
  return spawn(path.join(__dirname, "lab"), ["tool", "pause"], { env, stdio: ["ignore", "pipe", "pipe"] });
}
async function finished(child: ChildProcess) {
  let out = "", err = "";
  child.stdout?.on("data", (d) => { out += d; });
  child.stderr?.on("data", (d) => { err += d; });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out: out.trim(), err };
}
/** Resolves once the compiler is at work; fails when that does not happen within 60 s. */
async function compiling(): Promise<void> {
  const log = path.join(home, "logs/build-pause.log");
  const deadline = Date.now() + 60_000;
  while (!existsSync(log) || !/^internal\//m.test(readFileSync(log, "utf8"))) {
    if (Date.now() > deadline) throw new Error("the build did not start to compile");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
const results = () => readdirSync(path.join(home, "bin"));

describe.skipIf(!hasGo)("a build", () => {
  test("that is killed leaves nothing half-made, ends its compiler at the next run, and then succeeds", async () => {
    const killed = buildPause();
    await compiling();
    killed.kill("SIGKILL");
    await once(killed, "exit");
    killed.stdout?.destroy();
    killed.stderr?.destroy();
    expect(results()).toEqual([]);
    const again = await finished(buildPause());
    expect([again.code, again.err]).toEqual([0, expect.stringContaining("pause: built in")]);
    expect(existsSync(path.join(again.out, "pause"))).toBe(true);
    expect(readdirSync(path.join(home, "tmp"))).toEqual([]);
  });

  test("that is interrupted ends its compiler and says that it can be continued", async () => {
    rmSync(path.join(home, "bin"), { recursive: true });
    rmSync(path.join(home, "go"), { recursive: true });
    rmSync(path.join(home, "logs"), { recursive: true });
    const child = buildPause();
    const end = finished(child);
    await compiling();
    child.kill("SIGTERM");
    const { code, err } = await end;
    expect([code, err]).toEqual([130, expect.stringContaining("interrupted; the same command continues")]);
    expect(results()).toEqual([]);
  });

  test("of the same thing twice at once is one build; the second run waits for the first", async () => {
    const both = await Promise.all([finished(buildPause()), finished(buildPause())]);
    expect(both.map((r) => r.code)).toEqual([0, 0]);
    expect(both[0].out).toBe(both[1].out);
    expect(both.map((r) => r.err).join("")).toContain("waiting for it");
    expect(both.filter((r) => r.err.includes("pause: built in"))).toHaveLength(1);
  });
});
