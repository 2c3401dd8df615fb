import { execFile, execFileSync } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { refuse } from "./errors";
import { root } from "./versions";

const exec = promisify(execFile);

interface Failed {
  code?: string | number;
  stderr?: string;
  message: string;
}
const lastLine = (e: Failed) => (e.stderr || e.message).trim().split("\n").at(-1) ?? "";

/** Fails with what to do when this machine's Docker, or kind (`needsKind`), cannot be used. Makes nothing. */
export async function checkHost(needsKind: boolean): Promise<void> {
  await Promise.all([
    exec("docker", ["version", "--format", "{{.Server.Version}}"]).catch((e: Failed) => {
      if (e.code === "ENOENT") throw refuse("environment", "the docker command is not on PATH. Install Docker (https://docs.docker.com/engine/install), then run the same command again");
      throw refuse("environment", `Docker does not answer (${lastLine(e)}). Start it (Linux: systemctl start docker) and check that you may use its socket: docker info`);
    }),
    needsKind && exec("kind", ["version"]).catch((e: Failed) => {
      throw refuse("environment", `kind cannot be run (${e.code === "ENOENT" ? "not on PATH" : lastLine(e)}). Install it: https://kind.sigs.k8s.io/docs/user/quick-start/#installation`);
    }),
  ]);
}

/** Ids of images in the local Docker engine, by reference; an image that is not there is an error. */
export async function localImageIds(references: readonly string[]): Promise<Record<string, string>> {
  if (!references.length) return {};
  try {
    const { stdout } = await exec("docker", ["image", "inspect", "--format", "{{.Id}}", ...references]);
    return Object.fromEntries(stdout.trim().split("\n").map((id, i) => [references[i]!, id]));
  } catch (e) {
    const absent = /No such image: (\S+)/.exec((e as Failed).stderr ?? "")?.[1];
    throw refuse("environment", absent
      ? `image ${absent} is not in the local Docker engine, but dialout:imageSource or preloadImages wants it copied from there. In the lab: ./demo lab up; otherwise: docker pull ${absent}, or pulumi config set dialout:imageSource registry`
      : `docker image inspect failed: ${lastLine(e as Failed)}`);
  }
}

const PROGRAMS = ["relay", "remote-worker", "harness", "model-endpoint", "assertions"];

/** Brings the programs' bundles up to date with their sources: they are what the images copy. Under a second when nothing changed. */
export function buildPrograms(): void {
  try {
    execFileSync(process.execPath, [path.join(root, "scripts/build.mjs"), ...PROGRAMS], { cwd: root, stdio: ["ignore", "pipe", "pipe"], encoding: "utf8" });
  } catch (e) {
    throw refuse("environment", `the programs do not build: ${(e as Failed).stderr?.trim().split("\n")[0] ?? lastLine(e as Failed)}. See: npm run build`);
  }
}
