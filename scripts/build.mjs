// Bundles the programs into single files (dist/*.cjs): what `npm start` runs, what the images copy, and what the dynamic
// providers import. Arguments: names of targets; none = all. A file is replaced only when its bytes change, by rename, so
// that builds running side by side never see half a file.
import { build } from "esbuild";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const targets = {
  relay: { entry: "relay/src/main.ts", out: "relay/dist/main.cjs" },
  "remote-worker": { entry: "remote-worker/src/main.ts", out: "remote-worker/dist/main.cjs" },
  harness: { entry: "harness/src/main.ts", out: "harness/dist/main.cjs" },
  "model-endpoint": { entry: "model-endpoint/src/main.ts", out: "model-endpoint/dist/main.cjs" },
  "plugin-command": { entry: "lab/plugins/src/command/main.ts", out: "lab/plugins/dist/pulumi-resource-command.cjs" },
  "plugin-docker": { entry: "lab/plugins/src/docker/main.ts", out: "lab/plugins/dist/pulumi-resource-docker.cjs" },
  langhost: { entry: "lab/langhost/src/main.ts", out: "lab/langhost/dist/pulumi-language-nodejs.cjs" },
  assertions: { entry: "assertions/run.ts", out: "assertions/dist/run.cjs" },
};

const asked = process.argv.slice(2);
for (const name of asked) {
  if (!targets[name]) {
    console.error(`build: unknown target '${name}'. Known: ${Object.keys(targets).join(", ")}`);
    process.exit(3);
  }
}
for (const [name, { entry, out }] of Object.entries(targets)) {
  if (asked.length && !asked.includes(name)) continue;
  if (!existsSync(path.join(root, entry))) continue;
  const result = await build({
    entryPoints: [path.join(root, entry)],
    absWorkingDir: root,
    bundle: true,
    platform: "node",
    target: "node20",
    format: "cjs",
    outfile: path.join(root, out),
    sourcemap: "inline",
    sourcesContent: false,
    legalComments: "none",
    logLevel: "error",
    write: false,
    // pino and ws reach for these only when they are installed
    external: ["pino-pretty", "bufferutil", "utf-8-validate"],
    define: { "import.meta.url": "__importMetaUrl" },
    banner: { js: "const __importMetaUrl = require('node:url').pathToFileURL(__filename).href;" },
  });
  for (const file of result.outputFiles) {
    if (existsSync(file.path) && readFileSync(file.path).equals(Buffer.from(file.contents))) continue;
    mkdirSync(path.dirname(file.path), { recursive: true });
    const half = `${file.path}.${process.pid}.tmp`;
    writeFileSync(half, file.contents);
    renameSync(half, file.path);
  }
}
