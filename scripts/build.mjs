// Bundles the programs into single files (dist/*.cjs): what `npm start` runs, what the images copy, and what the dynamic
// providers import. Arguments: names of targets; none = all. A file is replaced only when its bytes change, by rename, so
// that builds running side by side never see half a file. A bundle whose sources are as they were is left alone: every `up`
// and `preview` comes through here, and bundling all of them takes seconds.
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
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

const stamp = (file) => {
  const s = statSync(path.join(root, file), { throwIfNoEntry: false });
  return s ? `${s.size} ${s.mtimeMs}` : "gone";
};
const recordOf = (out) => path.join(root, path.dirname(out), `.${path.basename(out)}.sources.json`);
/** Whether `out` was made from files that are all still the same, this one among them. */
function isFresh(out) {
  try {
    return Object.entries(JSON.parse(readFileSync(recordOf(out), "utf8"))).every(([file, was]) => stamp(file) === was);
  } catch {
    return false;
  }
}

function replace(file, contents) {
  mkdirSync(path.dirname(file), { recursive: true });
  const half = `${file}.${process.pid}.tmp`;
  writeFileSync(half, contents);
  renameSync(half, file);
}

for (const [name, { entry, out }] of Object.entries(targets)) {
  if (asked.length && !asked.includes(name)) continue;
  if (!existsSync(path.join(root, entry)) || isFresh(out)) continue;
  const { build } = await import("esbuild");
  // Before the build: a source that changes meanwhile must count as changed.
  const began = Date.now();
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
    metafile: true,
    // pino and ws reach for these only when they are installed
    external: ["pino-pretty", "bufferutil", "utf-8-validate"],
    define: { "import.meta.url": "__importMetaUrl" },
    banner: { js: "const __importMetaUrl = require('node:url').pathToFileURL(__filename).href;" },
  });
  for (const file of result.outputFiles) {
    if (!existsSync(file.path) || !readFileSync(file.path).equals(Buffer.from(file.contents))) replace(file.path, file.contents);
  }
  const sources = [...Object.keys(result.metafile.inputs), "scripts/build.mjs"];
  if (sources.some((f) => (statSync(path.join(root, f), { throwIfNoEntry: false })?.mtimeMs ?? Infinity) >= began)) continue;
  replace(recordOf(out), JSON.stringify(Object.fromEntries([...sources, out].map((f) => [f, stamp(f)]))));
}
