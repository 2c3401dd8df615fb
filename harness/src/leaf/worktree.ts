import path from "node:path";
import type { Envelope } from "../envelope";
import type { Leased } from "../sandbox/pool";
import { quote } from "../tools/shell";
import { LeafFailure } from "./result";
import type { LeafRun } from "./run";

const FETCH_TIMEOUT_S = 300;

/** Puts `ref` of `repoUrl`, and nothing else, into an empty folder. Fails at the first step that does. */
export function checkOutCommand(dir: string, repoUrl: string, ref: string): string {
  const d = quote(dir);
  return [
    `rm -rf ${d} && mkdir -p ${d} && cd ${d}`,
    "export GIT_TERMINAL_PROMPT=0",
    `git init -q && git remote add origin ${quote(repoUrl)}`,
    // Not every server hands out a single commit by its hash; then everything is fetched.
    `{ { git fetch -q --depth 1 origin ${quote(ref)} && git checkout -q --detach FETCH_HEAD; } || { git fetch -q origin && git checkout -q --detach ${quote(ref)}; }; }`,
  ].join(" && ");
}

/** The leaf's own checkout under `<cwd>/leaves/<sid>`, or undefined when the request names no repository. */
export async function checkOut(sandbox: Leased, run: LeafRun, { repoUrl, ref }: Pick<Envelope, "repoUrl" | "ref">): Promise<{ dir: string; clean(): Promise<void> } | undefined> {
  if (repoUrl === undefined || ref === undefined) return undefined;
  const dir = path.posix.join(sandbox.cwd, "leaves", run.sid);
  const clean = async () => {
    await sandbox.transport.exec(`rm -rf ${quote(dir)}`, { timeout: 60 }).catch((e: Error) => run.log.warn({ dir, cause: e.message }, "checkout not removed"));
  };
  const result = await sandbox.transport.exec(checkOutCommand(dir, repoUrl, ref), { timeout: FETCH_TIMEOUT_S, signal: run.signal, traceparent: run.trace.traceparent });
  if (result.exitCode === 0) return { dir, clean };
  await clean();
  // git repeats the URL, which may carry credentials.
  const said = result.stderr.toString("utf8").replaceAll(repoUrl, "[repository]").trim().slice(-500);
  throw new LeafFailure("bad_inputs", `cannot check out ${JSON.stringify(ref)} of the repository in ${sandbox.name}: ${said || `exit code ${result.exitCode}`}`);
}
