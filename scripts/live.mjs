// Runs a command against the demo that is up: node scripts/live.mjs COMMAND [args...]
// The command finds in its environment: CONFORMANCE_POD, _KUBECONFIG, _CONTEXT, _RELAY_ADDR, _SANDBOX_ID and SH_RELAY_EXEC_TOKEN for the
// conformance battery, BENCH_KUBECONFIG, BENCH_POD, BENCH_CONTAINER for the benchmarks. Nothing of it is left afterwards.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { root, toolPath } from "./demo/shell.mjs";

const NAMESPACE = "default", POOL = "sh.kagenti.io/sandbox-pool=default", WORKER = "dialout-worker";
const [command, ...args] = process.argv.slice(2);
if (!command) {
  console.error("usage: node scripts/live.mjs COMMAND [args...]");
  process.exit(3);
}

class Unfit extends Error {}
const capture = (file, argv) => execFileSync(file, argv, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 24 }).trim();

/** Resolves with the local port once kubectl says that it forwards. */
function forward(kubectl, env) {
  const child = spawn("kubectl", [...kubectl, "port-forward", "service/sandbox-relay", ":exec"], { env, stdio: ["ignore", "pipe", "pipe"] });
  return new Promise((resolve, reject) => {
    let said = "";
    const seen = (text) => {
      said += text;
      const port = /127\.0\.0\.1:(\d+)/.exec(said)?.[1];
      if (port) resolve({ child, port });
    };
    child.stdout.on("data", seen);
    child.stderr.on("data", seen);
    child.on("error", reject);
    child.on("exit", () => reject(new Unfit(`kubectl port-forward ended: ${said.trim()}`)));
  });
}

const dir = mkdtempSync(path.join(tmpdir(), "dialout-live-"));
let forwarding;
const tidy = () => {
  forwarding?.kill();
  rmSync(dir, { recursive: true, force: true });
};
process.on("exit", tidy);

try {
  const env = { ...process.env, PATH: toolPath() };
  const kubeconfig = path.join(dir, "kubeconfig");
  const config = capture("./demo", ["pulumi", "stack", "output", "kubeconfig", "--show-secrets"]);
  writeFileSync(kubeconfig, config, { mode: 0o600 });
  const kubectl = ["--kubeconfig", kubeconfig, "--namespace", NAMESPACE];
  const ask = (...argv) => execFileSync("kubectl", [...kubectl, ...argv], { env, encoding: "utf8" }).trim();
  const pod = ask("get", "pods", "--selector", POOL, "--field-selector", "status.phase=Running", "--output", "jsonpath={.items[0].metadata.name}");
  const token = Buffer.from(ask("get", "secret", "sh-relay-token", "--output", "jsonpath={.data.SH_RELAY_EXEC_TOKEN}"), "base64").toString();
  const { child, port } = await forward(kubectl, env);
  forwarding = child;
  const inside = JSON.parse(capture("docker", ["inspect", WORKER]))[0].Config.Env;
  const live = {
    CONFORMANCE_POD: pod, CONFORMANCE_NAMESPACE: NAMESPACE, CONFORMANCE_KUBECONFIG: kubeconfig, CONFORMANCE_RELAY_ADDR: `127.0.0.1:${port}`,
    CONFORMANCE_SANDBOX_ID: inside.find((e) => e.startsWith("SANDBOX_ID=")).slice("SANDBOX_ID=".length), SH_RELAY_EXEC_TOKEN: token,
    BENCH_KUBECONFIG: kubeconfig, BENCH_POD: pod, BENCH_NAMESPACE: NAMESPACE, BENCH_CONTAINER: WORKER,
  };
  const run = spawn(command, args, { cwd: root, env: { ...env, ...live }, stdio: "inherit" });
  for (const s of ["SIGINT", "SIGTERM"]) process.on(s, () => run.kill(s));
  process.exitCode = await new Promise((resolve, reject) => run.on("error", reject).on("exit", (code) => resolve(code ?? 1)));
  child.removeAllListeners("exit");
} catch (e) {
  console.error(`error: ${e instanceof Unfit ? e.message : `${e.message.split("\n")[0]} ${(e.stderr ?? "").toString().trim().split("\n").at(-1)}`}\n  fix: ./demo up, then run the same command again`);
  process.exitCode = 2;
} finally {
  tidy();
}
