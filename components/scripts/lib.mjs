// Shared by the scripts that Pulumi's `command` resources run. Their stdout is a resource output; everything for people goes to stderr.
import { spawn } from "node:child_process";

/** A problem the user must solve; ends a script with one line and exit code 2. */
export class Unfit extends Error {}

/** @param {() => Promise<void>} main */
export async function runScript(main) {
  try {
    await main();
  } catch (e) {
    if (!(e instanceof Unfit)) throw e;
    process.stderr.write(`dialout[environment]: ${e.message}\n`);
    process.exitCode = 2;
  }
}

/**
 * Runs a program to its end. Resolves with its exit code and output, also when it failed; code -1 when it could not be started.
 * @param {string} command @param {string[]} args
 * @param {{ env?: Record<string, string>, input?: string, quiet?: boolean }} [options] quiet: its stderr is only collected
 * @returns {Promise<{ code: number, stdout: string, stderr: string }>}
 */
export function run(command, args, { env = {}, input, quiet = true } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] });
    let stdout = "", stderr = "";
    child.stdout.setEncoding("utf8").on("data", (d) => { stdout += d; });
    child.stderr.setEncoding("utf8").on("data", (d) => {
      stderr += d;
      if (!quiet) process.stderr.write(d);
    });
    child.on("error", (e) => resolve({ code: -1, stdout, stderr: String(e.message) }));
    child.on("close", (code) => resolve({ code: code ?? 1, stdout, stderr }));
    child.stdin.on("error", () => {}); // it ended before it read everything; its exit code says why
    child.stdin.end(input ?? "");
  });
}

/** stdout of `docker ARGS`, trimmed; an Unfit error says what Docker said. @param {string[]} args */
export async function docker(...args) {
  const r = await run("docker", args);
  if (r.code === 0) return r.stdout.trim();
  throw new Unfit(dockerProblem(r.stderr, args));
}

/** @param {string} stderr @param {string[]} args */
export function dockerProblem(stderr, args) {
  const lines = stderr.trim().split("\n");
  const first = lines.find((l) => /error/i.test(l)) ?? lines.at(-1) ?? "";
  if (/ENOENT/.test(first)) return "the docker command is not on PATH. Install Docker (https://docs.docker.com/engine/install), then run the same command again";
  if (/Cannot connect to the Docker daemon|permission denied.*docker|Is the docker daemon running/i.test(stderr)) {
    return `Docker does not answer (${first}). Start it (Linux: systemctl start docker) and check that you may use its socket: docker info`;
  }
  return `docker ${args.slice(0, 2).join(" ")} failed: ${first}`;
}

/** A required variable of a script. @param {string} name */
export function variable(name) {
  const value = process.env[name];
  if (!value) throw new Unfit(`${name} is not set: this script is run by the Pulumi program`);
  return value;
}
