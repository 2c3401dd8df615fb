// Where the programs under comparison are, or why a comparison cannot be made here.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import path from "node:path";

export const REPO = path.resolve(__dirname, "../../..");
const NEEDED = ["pulumi-language-nodejs", "pulumi-resource-docker", "pulumi-resource-command"];

/** Folder with the genuine programs; an archive from a cache folder is unpacked into `scratch`. */
export function genuineFolder(scratch: string): string | undefined {
  const lab = process.env.LAB_HOME ?? path.join(REPO, ".lab");
  const ready = [process.env.LAB_GENUINE, path.join(lab, "bin/genuine")].find((folder) => folder && NEEDED.every((name) => existsSync(path.join(folder, name))));
  if (ready) return ready;
  const caches = (process.env.LAB_CACHE ?? path.join(REPO, "../shared/lab-cache")).split(":").filter(Boolean);
  const archive = caches.map((folder) => path.join(folder, "genuine.tar.xz")).find((file) => existsSync(file));
  if (!archive) return undefined;
  const into = path.join(scratch, "genuine");
  mkdirSync(into, { recursive: true });
  execFileSync("tar", ["-C", into, "-xJf", archive]);
  return NEEDED.every((name) => existsSync(path.join(into, name))) ? into : undefined;
}

/** The Pulumi CLI. */
export function pulumiProgram(): string | undefined {
  const candidates = [process.env.PULUMI_PROGRAM, path.join(process.env.LAB_HOME ?? path.join(REPO, ".lab"), "bin/pulumi/pulumi"), onPath("pulumi")];
  return candidates.find((file) => file && existsSync(file));
}

function onPath(name: string): string | undefined {
  return (process.env.PATH ?? "").split(":").map((folder) => path.join(folder, name)).find((file) => existsSync(file));
}

/** An image to make containers of: it needs /bin/sh, sleep and cat. The lab's own are tried, then any of Debian. */
export function baseImage(): string | undefined {
  try {
    const images = execFileSync("docker", ["image", "ls", "--format", "{{.Repository}}:{{.Tag}}"], { encoding: "utf8" }).split("\n");
    const wanted = [process.env.PLUGINS_TEST_IMAGE, "lab/pool:bookworm", "lab/debian-node:bookworm", "lab/iptables:bookworm", "debian:12", "debian:bookworm"];
    return wanted.find((image) => image && images.includes(image)) ?? images.find((image) => /^(debian|ubuntu|alpine):(?!<none>)/.test(image));
  } catch {
    return undefined;
  }
}

export function docker(...args: string[]): string {
  return execFileSync("docker", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
}

/** Removes what a run may have left; nothing else bears these names. */
export function removeLeftovers(): void {
  const ids = (args: string[]): string[] => docker(...args).split("\n").filter(Boolean);
  const containers = ids(["ps", "-aq", "--filter", "name=plugtry-"]);
  if (containers.length) docker("rm", "-f", "-v", ...containers);
  const networks = ids(["network", "ls", "-q", "--filter", "name=plugtry-"]);
  if (networks.length) docker("network", "rm", ...networks);
  const images = ids(["image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "--filter", "reference=plugtry-*"]);
  if (images.length) docker("rmi", "-f", ...images);
}
