// One program through the Pulumi CLI, with the genuine plugins and language host and with the stand-ins: the same steps, outputs
// and secrets in every stage of its life.
import { execFile, execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { REPO, baseImage, docker, genuineFolder, pulumiProgram, removeLeftovers } from "./testing/programs";

const scratch = mkdtempSync(path.join(tmpdir(), "plugtry-"));
const image = baseImage();
const pulumi = pulumiProgram();
const genuine = image && pulumi ? genuineFolder(scratch) : undefined;
const reason = !image ? "no Docker with an image to make containers of (lab/lab up makes them)" : !pulumi ? "no Pulumi CLI" : !genuine ? "no genuine programs (genuine.tar.xz in a folder of LAB_CACHE)" : undefined;
if (reason) console.log(`program.e2e: skipped, ${reason}`);

const VERSIONS = { docker: "5.2.0", command: "1.2.1" };
const PROGRAM = path.join(REPO, "lab/plugins/testing/program");

interface Result {
  code: number;
  /** `create docker:index/network:Network network`, sorted. */
  steps: string[];
  /** What the user is told, errors and output of the program. */
  messages: string[];
}

/** A Pulumi home, backend and copy of the program of its own. */
class Pulumi {
  private readonly env: NodeJS.ProcessEnv;
  private readonly folder: string;

  constructor(private readonly set: "genuine" | "standin", programs: string) {
    const root = path.join(scratch, set);
    const bin = path.join(root, "bin");
    this.folder = path.join(root, "program");
    for (const folder of [bin, path.join(root, "state")]) mkdirSync(folder, { recursive: true });
    cpSync(PROGRAM, this.folder, { recursive: true });
    symlinkSync(path.join(REPO, "node_modules"), path.join(this.folder, "node_modules"));
    symlinkSync(path.join(programs, "pulumi-language-nodejs"), path.join(bin, "pulumi-language-nodejs"));
    symlinkSync(path.join(REPO, "lab/langhost/pulumi-resource-pulumi-nodejs"), path.join(bin, "pulumi-resource-pulumi-nodejs"));
    this.env = {
      ...process.env,
      PATH: `${bin}:${process.env.PATH}`,
      PULUMI_HOME: path.join(root, "home"),
      PULUMI_BACKEND_URL: `file://${path.join(root, "state")}`,
      PULUMI_CONFIG_PASSPHRASE: "test",
      PULUMI_SKIP_UPDATE_CHECK: "true",
      PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
    };
    for (const [name, version] of Object.entries(VERSIONS)) this.now("plugin", "install", "resource", name, version, "--file", path.join(programs, `pulumi-resource-${name}`));
    this.now("stack", "init", "dev");
    this.now("config", "set", "image", image ?? "");
    this.now("config", "set", "--secret", "token", "s3cr3t-token");
  }

  now(...args: string[]): string {
    return execFileSync(pulumi ?? "", [...args, "--non-interactive"], { cwd: this.folder, env: this.env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  stage(stage: number): void {
    this.now("config", "set", "stage", String(stage));
  }

  async run(...args: string[]): Promise<Result> {
    const { code, stdout } = await new Promise<{ code: number; stdout: string }>((resolve) => {
      const child = execFile(pulumi ?? "", [...args, "--json", "--non-interactive"], { cwd: this.folder, env: this.env, maxBuffer: 1 << 28 }, (_error, out) => resolve({ code: child.exitCode ?? -1, stdout: out }));
    });
    type Event = { resourcePreEvent?: { metadata: { op: string; urn: string; type: string } }; diagnosticEvent?: { message: string; severity: string } };
    const events = stdout.split("\n").filter((line) => line.startsWith("{\"sequence\"")).map((line) => JSON.parse(line) as Event);
    return {
      code,
      steps: events.flatMap(({ resourcePreEvent: event }) => (event ? [`${event.metadata.op} ${event.metadata.type} ${event.metadata.urn.split("::").at(-1)}`] : [])).filter((step) => !step.includes("pulumi:providers:")).sort(),
      messages: events.flatMap(({ diagnosticEvent: event }) => (event && event.severity !== "warning" && event.severity !== "debug" ? [event.message.replace(/<\{%.*?%\}>/g, "").trim()] : [])).filter((line) => line !== ""),
    };
  }

  preview(): { op: string; urn: string; replaced: string[] }[] {
    type Step = { op: string; urn: string; replaceReasons?: string[] };
    const { steps } = JSON.parse(this.now("preview", "--json")) as { steps: Step[] };
    return steps.map(({ op, urn, replaceReasons }) => ({ op, urn: urn.split("::").at(-1) ?? "", replaced: [...(replaceReasons ?? [])].sort() })).sort((a, b) => (`${a.urn} ${a.op}` < `${b.urn} ${b.op}` ? -1 : 1));
  }

  outputs(): unknown {
    return JSON.parse(this.now("stack", "output", "--json"));
  }

  /** Names of outputs that the state holds encrypted, by resource. */
  secrets(): Record<string, string[]> {
    type State = { deployment: { resources: { urn: string; outputs?: Record<string, unknown> }[] } };
    const { resources } = (JSON.parse(this.now("stack", "export")) as State).deployment;
    return Object.fromEntries(resources.map(({ urn, outputs }) => [urn.split("::").at(-1), Object.entries(outputs ?? {}).filter(([, value]) => JSON.stringify(value).includes("ciphertext")).map(([key]) => key).sort()]));
  }

  end(): void {
    this.now("destroy", "--yes", "--skip-preview");
  }
}

describe.skipIf(reason)("a program with the stand-ins is as with the genuine programs", () => {
  const records: Record<string, unknown[]> = {};
  const runs: Pulumi[] = [];
  const standin = path.join(scratch, "packed");

  beforeAll(() => {
    execFileSync(path.join(REPO, "lab/plugins/pack.sh"), [standin]);
    removeLeftovers();
  });
  afterAll(() => {
    for (const run of runs) run.end();
    removeLeftovers();
    rmSync(scratch, { recursive: true, force: true });
  });

  test.each(["genuine", "standin"] as const)("%s", async (set) => {
    const run = new Pulumi(set, set === "genuine" ? (genuine ?? "") : standin);
    runs.push(run);
    const seen: unknown[] = (records[set] = []);
    seen.push(run.preview());
    const up = await run.run("up", "--yes", "--skip-preview");
    expect(up.messages.join("\n")).toContain("said by the program");
    expect(up.code, up.messages.join("\n")).toBe(0);
    seen.push(up.steps, run.outputs(), run.secrets());
    expect(docker("exec", "plugtry-program", "cat", "/etc/token")).toBe("s3cr3t-token");
    seen.push((await run.run("up", "--yes", "--skip-preview", "--expect-no-changes")).code);
    seen.push((await run.run("refresh", "--yes", "--skip-preview")).steps);

    run.stage(2);
    seen.push(run.preview());
    const changed = await run.run("up", "--yes", "--skip-preview");
    seen.push(changed.code, changed.steps, run.outputs());

    docker("rm", "-f", "plugtry-program");
    seen.push((await run.run("refresh", "--yes", "--skip-preview")).code, (await run.run("up", "--yes", "--skip-preview")).steps);

    run.stage(3);
    const failed = await run.run("up", "--yes", "--skip-preview");
    expect(failed.messages.join("\n")).toContain("the program fails on purpose");
    seen.push(failed.code, failed.steps);

    docker("rm", "-f", "plugtry-program");
    const destroyed = await run.run("destroy", "--yes", "--skip-preview");
    seen.push(destroyed.code, destroyed.steps);
    expect(docker("ps", "-aq", "--filter", "name=plugtry-program")).toBe("");
    expect(docker("network", "ls", "-q", "--filter", "name=plugtry-program")).toBe("");
    removeLeftovers();
  });

  test("both are the same", () => {
    expect(records.standin).toEqual(records.genuine);
  });
});
