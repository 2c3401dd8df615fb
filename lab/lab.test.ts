import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";

const folder = __dirname;
const scratch = mkdtempSync(path.join(tmpdir(), "lab-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Runs lab/lab with a LAB_HOME that does not exist, no cache folder and a Docker that does not answer. */
function lab(args: string[], env: Record<string, string> = {}) {
  const home = path.join(scratch, "home");
  const r = spawnSync(path.join(folder, "lab"), args, { encoding: "utf8", env: { ...process.env, LAB_HOME: home, LAB_CACHE: "", LAB_PLUGINS: "auto", DOCKER_HOST: "unix:///nonexistent", ...env } });
  return { code: r.status, out: r.stdout, err: r.stderr, home };
}

/** The recipe hash as docs and cache folders know it, computed without the shell. */
function recipeId(tool: string, packages: string, flags = ""): string {
  const dir = path.join(folder, "go", tool);
  const files = readdirSync(dir).filter((f) => /^go\.|\.go$/.test(f)).sort();
  const hash = createHash("sha256").update(`go1.26.8\nlinux\namd64\n${flags}\n${packages}\n`);
  for (const f of files) hash.update(readFileSync(path.join(dir, f)));
  return hash.digest("hex").slice(0, 16);
}

describe("lab/lab", () => {
  test("plan on a bare machine lists everything, from source, and makes nothing", () => {
    const r = lab(["plan"]);
    expect(r.code, r.err).toBe(0);
    for (const line of ["tool kubernetes: from source", "root file system worker (trixie)", "image lab/node:", "plugins: standin"]) expect(r.out).toContain(line);
    expect(r.out).not.toContain("kourier");
    expect(existsSync(r.home)).toBe(false);
  });

  test("plan takes a tool from a cache folder by the hash of its recipe, and by nothing else", () => {
    const cache = mkdtempSync(path.join(scratch, "cache-"));
    const hit = `kind-${recipeId("kind", "kind=sigs.k8s.io/kind")}.tar.xz`;
    writeFileSync(path.join(cache, hit), "");
    writeFileSync(path.join(cache, "etcd-0000000000000000.tar.xz"), "");
    const r = lab(["plan"], { LAB_CACHE: `/nonexistent:${cache}` });
    expect(r.out).toContain(`tool kind: unpack ${path.join(cache, hit)}`);
    expect(r.out).toContain("tool etcd: from source");
  });

  test.each([
    [["up", "--plugins", "fake"], /LAB_PLUGINS='fake' must be auto, genuine or standin/],
    [["upp"], /unknown command 'upp'/],
    [["up", "--fast"], /unknown option '--fast'/],
    [["plan", "more"], /takes 0 argument/],
    [["tool", "ketcd"], /unknown tool 'ketcd' \(known: .*etcd/],
  ])("%j is refused with exit code 3", (args, message) => {
    const r = lab(args);
    expect([r.code, r.err]).toEqual([3, expect.stringMatching(message)]);
    expect(existsSync(r.home)).toBe(false);
  });

  test("packages that dpkg does not know are missing ones", () => {
    const stub = mkdtempSync(path.join(scratch, "stub-"));
    writeFileSync(path.join(stub, "dpkg-query"), '#!/bin/sh\necho "installed jq"\necho "config-files mmdebstrap"\nexit 1\n', { mode: 0o755 });
    const r = lab(["--step", "missing_packages"], { PATH: `${stub}:${process.env.PATH}` });
    expect(r.code, r.err).toBe(0);
    expect(r.out.split("\n")).toEqual(expect.arrayContaining(["mmdebstrap", "xz-utils"]));
    expect(r.out.split("\n")).not.toContain("jq");
  });

  test("a LAB_HOME that scripts could not quote is refused", () => {
    expect(lab(["plan"], { LAB_HOME: "relative" })).toMatchObject({ code: 3, err: expect.stringContaining("absolute path") });
    expect(lab(["plan"], { LAB_HOME: "/a b" })).toMatchObject({ code: 3, err: expect.stringContaining("blanks") });
  });

  test("env before up says what to run, and prints nothing to stdout", () => {
    expect(lab(["env"])).toMatchObject({ code: 2, out: "", err: expect.stringContaining("lab/lab up --plugins standin") });
  });

  test("genuine plugins that are nowhere are an error that names the setting", () => {
    expect(lab(["has-genuine"]).code).toBe(1);
    expect(lab(["env", "--plugins", "genuine"])).toMatchObject({ code: 2, err: expect.stringMatching(/LAB_CACHE/) });
  });

  test("remove refuses a folder that the lab did not make", () => {
    expect(lab(["remove"], { LAB_HOME: scratch })).toMatchObject({ code: 1, err: expect.stringContaining("was not made by the lab") });
    expect(existsSync(scratch)).toBe(true);
  });

  test("plugin versions are those of package.json", () => {
    const { dependencies } = JSON.parse(readFileSync(path.join(folder, "../package.json"), "utf8"));
    const versions = readFileSync(path.join(folder, "versions.env"), "utf8");
    for (const name of ["kubernetes", "docker", "command"]) expect(versions).toContain(`PLUGIN_${name.toUpperCase()}_VERSION=${dependencies[`@pulumi/${name}`]}\n`);
  });
});

const shellcheck = spawnSync("shellcheck", ["--version"]).status === 0;
test.skipIf(!shellcheck)("shellcheck finds nothing", { timeout: 90_000 }, () => {
  execFileSync("shellcheck", ["-x", "-a", "lab", "docker/runc-without-sys-resource"], { cwd: folder });
});
