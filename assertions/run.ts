// Entry of the bundle assertions/dist/run.cjs: what the dynamic provider imports, and a command for use without Pulumi.
import { SettingError } from "@dialout/common";
import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { cli } from "./cli";
import { describe, type Outcome } from "./evidence";
import { parseInput } from "./input";
import { prove } from "./prove";
import { realStage } from "./stage";
import { demonstrate } from "./vignettes";
import { realCluster, realWorld } from "./world";

export type Kind = "prove" | "vignettes";

/** Runs a proof or the vignettes for an unchecked input. Rejects with SettingError when the input is not usable, never for a failed check. */
export async function run(kind: Kind, raw: unknown, progress?: (check: string) => void): Promise<Outcome> {
  const input = parseInput(raw);
  const world = realWorld(input);
  try {
    if (kind === "prove") return await prove(input, world, progress);
    const stage = await realStage(input, realCluster(input));
    try {
      return await demonstrate(input, { stage, store: world.store }, progress);
    } finally {
      await stage.close();
    }
  } finally {
    await world.store.close();
  }
}

/** Outputs of the Pulumi resource. Inputs are not among them: the kubeconfig has no business in an output. */
export interface Outs extends Outcome {
  /** Digest of the inputs this outcome is about. */
  inputs: string;
}

/** For the dynamic provider: the resource's outputs. What goes wrong is part of them, so that it is kept. */
export async function outputs(kind: Kind, props: Record<string, unknown>): Promise<Outs> {
  const inputs = digest(props);
  try {
    // The engine shows what is printed. The proof takes seconds; the demonstrations take minutes.
    const progress = kind === "vignettes" ? (check: string) => console.log(`vignettes: ${check}`) : undefined;
    return { ...(await run(kind, props, progress)), inputs };
  } catch (e) {
    const check = e instanceof SettingError ? "input" : "proof";
    const evidence = [{ check, expected: "to run to its end", seen: describe(e), ok: false }];
    return { passed: false, message: `the ${kind === "prove" ? "proof" : "demonstration"} could not be run: ${describe(e)}. Next: ./demo doctor`, verdicts: [], evidence, inputs };
  }
}

/** Whether an update has to run it again: other inputs, or it did not pass last time. */
export function changed(olds: Partial<Outs>, news: Record<string, unknown>): boolean {
  return olds.passed !== true || olds.inputs !== digest(news);
}

/** Independent of the order of keys; keys of the engine's own (`__provider`) and missing values do not count. */
export function digest(props: Record<string, unknown>): string {
  const canonical = (v: unknown): unknown => {
    if (Array.isArray(v)) return v.map(canonical);
    if (typeof v !== "object" || v === null) return v;
    const entries = Object.entries(v).filter(([k, x]) => !k.startsWith("__") && x !== undefined && x !== null);
    return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, x]) => [k, canonical(x)]);
  };
  return createHash("sha256").update(JSON.stringify(canonical(props))).digest("hex");
}

// Not `require.main === module`: that is true as well for what code evaluated from a string imports, as a dynamic provider is.
if (process.argv[1] && realpathSync(process.argv[1]) === __filename) void cli(process.argv.slice(2), run);
