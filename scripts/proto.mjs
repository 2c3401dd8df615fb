// Regenerates proto/src/sandbox.ts from proto/sandbox/v1/sandbox.proto. `--check` writes nothing and fails when they differ.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, copyFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const bin = (name) => path.join(root, "node_modules", ".bin", name);
const checkedIn = path.join(root, "proto", "src", "sandbox.ts");
const out = mkdtempSync(path.join(tmpdir(), "dialout-proto-"));
try {
  const template = {
    version: "v2",
    plugins: [{
      local: bin("protoc-gen-ts_proto"),
      out,
      opt: ["outputServices=grpc-js", "esModuleInterop=true", "env=node", "forceLong=bigint", "oneof=unions-value", "useExactTypes=false", "importSuffix="],
    }],
  };
  execFileSync(bin("buf"), ["generate", "--template", JSON.stringify(template), path.join(root, "proto"), "--path", path.join(root, "proto/sandbox")], { stdio: "inherit", cwd: root });
  const generated = path.join(out, "sandbox", "v1", "sandbox.ts");
  // The tool versions are pinned in package-lock.json; their header only adds noise to diffs.
  const text = readFileSync(generated, "utf8").replace(/^\/\/ versions:\n(\/\/ {2}.*\n)+/m, "");
  writeFileSync(generated, text);
  if (process.argv.includes("--check")) {
    if (readFileSync(checkedIn, "utf8") !== text) {
      console.error("proto/src/sandbox.ts differs from proto/sandbox/v1/sandbox.proto. Run: npm run proto");
      process.exitCode = 1;
    }
  } else copyFileSync(generated, checkedIn);
} finally {
  rmSync(out, { recursive: true, force: true });
}
