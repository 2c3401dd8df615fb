// A file that exists in the worker's container and nowhere else. Its name and tag are told to the model, the other half of its
// line is not: only who read the file there can quote it.
import { randomBytes } from "node:crypto";
import type { WorkerPort } from "./ports";

export interface Marker {
  path: string;
  /** In the prompt. */
  tag: string;
  /** Never leaves this process but through the file: 16 random bytes in hex. */
  secret: string;
  line: string;
}

export function newMarker(folder = "/tmp"): Marker {
  const [id, tag, secret] = [8, 6, 16].map((n) => randomBytes(n).toString("hex")) as [string, string, string];
  return { path: `${folder}/dialout-proof-${id}.txt`, tag: `marker-${tag}`, secret, line: `marker-${tag} ${secret}` };
}

/** Writes the file, readable for the uid commands run under, and reads it back. Rejects when it is not what was written. */
export async function plant(worker: WorkerPort, m: Marker): Promise<void> {
  const wrote = await worker.exec(["sh", "-c", `umask 022; set -C; cat > '${m.path}' && cat '${m.path}'`], `${m.line}\n`);
  if (wrote.exitCode !== 0) throw new Error(`writing ${m.path} ended with ${wrote.exitCode}: ${wrote.stderr.trim()}`);
  if (wrote.stdout !== `${m.line}\n`) throw new Error(`${m.path} does not hold what was written`);
}

/** Rejects when the file is still there afterwards. */
export async function remove(worker: WorkerPort, m: Marker): Promise<void> {
  const gone = await worker.exec(["sh", "-c", `rm -f '${m.path}'; test ! -e '${m.path}'`]);
  if (gone.exitCode !== 0) throw new Error(`${m.path} is still there: ${gone.stderr.trim()}`);
}
