import { randomBytes } from "node:crypto";
import { fine, wrong, type Finding } from "./evidence";
import type { Stage } from "./stage";

/** A folder in the worker that the demonstrations own. */
export interface Scratch {
  readonly dir: string;
}
export const scratch = (): Scratch => ({ dir: `/tmp/dialout-vignettes-${randomBytes(6).toString("hex")}` });

export async function cleanUp(stage: Stage, { dir }: Scratch): Promise<Finding> {
  const r = await stage.transport.exec(`rm -rf ${dir}; test ! -e ${dir}`, { timeout: 30 });
  return r.exitCode === 0 ? fine("gone") : wrong(r.stderr.toString() || `exit ${r.exitCode}`);
}

/** Bytes in a file of the worker; 0 when there is none. */
export async function size(stage: Stage, file: string): Promise<number> {
  const r = await stage.transport.exec(`stat -c %s ${file} 2>/dev/null || echo 0`, { timeout: 10 });
  const n = Number(r.stdout.toString().trim());
  if (!Number.isInteger(n)) throw new Error(`size of ${file}: ${r.stdout.toString()}`);
  return n;
}

/** Times since it was made, whole ms. */
export class Watch {
  private readonly began = performance.now();
  readonly times: number[] = [];
  elapsed(): number {
    return Math.round(performance.now() - this.began);
  }
  tick(): void {
    this.times.push(this.elapsed());
  }
  spread(): number {
    return this.times.length ? this.times.at(-1)! - this.times[0]! : 0;
  }
}
