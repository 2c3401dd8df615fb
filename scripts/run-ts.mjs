// Runs a TypeScript entry point of this repository: node scripts/run-ts.mjs FILE [args...]
import { build } from "esbuild";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const [entry, ...args] = process.argv.slice(2);
if (!entry) {
  console.error("usage: node scripts/run-ts.mjs FILE [args...]");
  process.exit(3);
}
// Inside the repository, so that packages left external resolve from its node_modules.
const dir = mkdtempSync(path.join(root, "node_modules", ".run-"));
const out = path.join(dir, "main.cjs");
process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
await build({ entryPoints: [path.resolve(entry)], outfile: out, bundle: true, platform: "node", target: "node20", format: "cjs", sourcemap: "inline", logLevel: "error", external: ["pino-pretty", "bufferutil", "utf-8-validate"], define: { "import.meta.url": "__importMetaUrl" }, banner: { js: "const __importMetaUrl = require('node:url').pathToFileURL(__filename).href;" } });
const child = spawn(process.execPath, ["--enable-source-maps", out, ...args], { stdio: "inherit", env: { ...process.env, DIALOUT_ROOT: root } });
for (const s of ["SIGINT", "SIGTERM"]) process.on(s, () => child.kill(s));
child.on("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
