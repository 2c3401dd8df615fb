import type { dynamic } from "@pulumi/pulumi";

/**
 * The dynamic provider. Pulumi writes the text of these functions into the state and runs it in a process of its own that knows
 * no TypeScript. So they hold nothing but an import of the bundle, found from the program's folder (that process's working
 * folder; `npm ci` or `npm run build` makes the bundle); they capture nothing but `kind`, and `delete`, which runs the code
 * of the last update, needs neither bundle nor inputs: a proof leaves nothing to remove.
 */
export function provider(kind: "prove" | "vignettes"): dynamic.ResourceProvider {
  return {
    async create(inputs) {
      const { pathToFileURL } = await import("node:url");
      const { outputs } = await import(pathToFileURL("assertions/dist/run.cjs").href);
      return { id: kind, outs: await outputs(kind, inputs) };
    },
    async update(_id, _olds, news) {
      const { pathToFileURL } = await import("node:url");
      const { outputs } = await import(pathToFileURL("assertions/dist/run.cjs").href);
      return { outs: await outputs(kind, news) };
    },
    async diff(_id, olds, news) {
      const { pathToFileURL } = await import("node:url");
      const { changed } = await import(pathToFileURL("assertions/dist/run.cjs").href);
      return { changes: changed(olds, news) };
    },
    async delete() {},
  };
}
