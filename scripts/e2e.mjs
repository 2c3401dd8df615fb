// The end-to-end test: the real program on this machine, from no cluster to verdicts and back to nothing.
// usage: node scripts/e2e.mjs [--plugins genuine|standin] [--results FILE] [--only PATTERN] [--existing]
// --existing: also in a cluster that is not the stack's own
// Every step prints PASS or FAIL with its time; steps that need an earlier one that failed are counted as failed.
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterChoosing, root } from "./demo/shell.mjs";
import { changedEnv, checkFlip, checkOutputs } from "./e2e-checks.mjs";
import { UsersCluster } from "./e2e-existing.mjs";

const arg = (name) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : undefined);
const plugins = arg("--plugins") ?? "genuine";
const only = arg("--only") && new RegExp(arg("--only"));
const stateDir = mkdtempSync(path.join(tmpdir(), "e2e-state-"));
const env = { ...process.env, LAB_PLUGINS: plugins, DIALOUT_STATE_DIR: stateDir };
// A stack of the test's own, with the settings of the one that ./demo would use here: what it leaves when it is killed can be told from a user's.
const usual = afterChoosing('echo "$STACK"', env);
env.DIALOUT_STACK = `e2e-${usual}`;
const settingsFile = path.join(root, `Pulumi.${env.DIALOUT_STACK}.yaml`);
copyFileSync(path.join(root, `Pulumi.${usual}.yaml`), settingsFile);
process.on("exit", () => rmSync(settingsFile, { force: true }));
const results = [];
const began = Date.now();
let broken;

/** Runs ./demo with its output shown; resolves with exit code and stdout. */
const demo = (args, options) => run("./demo", args, options);

function run(file, args, { quiet = false, interruptAfter } = {}) {
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    let stdout = "", all = "", interrupted = false;
    const seen = (text) => {
      all += text;
      if (interruptAfter && !interrupted && interruptAfter.test(all)) {
        interrupted = true;
        process.kill(-child.pid, "SIGKILL");
      }
    };
    child.stdout.on("data", (d) => { stdout += d; seen(d); if (!quiet) process.stderr.write(d); });
    child.stderr.on("data", (d) => { seen(d); if (!quiet) process.stderr.write(d); });
    child.on("close", (code, signal) => resolve({ code, signal, stdout, all, interrupted }));
  });
}

async function step(name, body, { fatal = false } = {}) {
  if (only && !only.test(name)) return;
  if (broken) return void results.push({ name, ok: false, why: `not run: '${broken}' failed` });
  const t = Date.now();
  let why;
  try {
    await body();
  } catch (e) {
    why = e.message;
    if (fatal) broken = name;
  }
  const total = Math.round((Date.now() - began) / 1000);
  results.push({ name, ok: !why, why, ms: Date.now() - t });
  console.error(`${why ? "FAIL" : "PASS"}: ${name} (${((Date.now() - t) / 1000).toFixed(1)} s, ${total} s in all)${why ? `\n      ${why}` : ""}`);
}

function must(condition, message) {
  if (!condition) throw new Error(message);
}
const docker = (...args) => execFileSync("docker", args, { encoding: "utf8" }).trim();
async function ok(args, options) {
  const r = await demo(args, options);
  must(r.code === 0, `./demo ${args.join(" ")} ended with ${r.code ?? r.signal}`);
  return r;
}
const outputs = async () => JSON.parse((await ok(["outputs"], { quiet: true })).stdout);

// Somebody's demo may be up on this machine. It is not this test's to take down.
const tryDocker = (...args) => { // on a bare machine there is none before the first `up`
  try {
    return execFileSync("docker", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "";
  }
};
if (tryDocker("network", "ls", "-q", "--filter", `label=dev.dialout.stack=${env.DIALOUT_STACK}`)) await demo(["down"]); // what a killed run of this test left
const theirStack = `e2e-mine-${usual}`;
UsersCluster.sweep(tryDocker, theirStack);
const inTheWay = tryDocker("ps", "-a", "--filter", "name=^dialout-", "--format", "{{.Names}}");
if (inTheWay) {
  console.error(`error: a demo is up on this machine (${inTheWay.split("\n").join(", ")}); the end-to-end test needs its names free\n  fix: ./demo down, then run the same command again`);
  process.exit(2);
}

const ourImages = () => tryDocker("images", "--format", "{{.Repository}}:{{.Tag}}", "dev.local/dialout-*").split("\n").filter(Boolean);
const imagesBefore = ourImages();

const nothingLeft = () => {
  must(docker("ps", "-aq", "--filter", "name=dialout") === "", "containers are left");
  must(docker("network", "ls", "-q", "--filter", "name=dialout") === "", "a network is left");
  const tags = ourImages().filter((t) => !imagesBefore.includes(t));
  must(tags.length === 0, `image tags are left: ${tags.join(" ")}`);
};

let first;
await step("up from nothing ends with a passed proof", async () => {
  await ok(["up"]);
  first = await outputs();
  const problems = checkOutputs(first);
  must(problems.length === 0, problems.join("; "));
}, { fatal: true });
await step("a second up changes nothing and keeps the evidence", async () => {
  await ok(["up", "--expect-no-changes"]);
  must(JSON.stringify((await outputs()).verdicts) === JSON.stringify(first.verdicts), "the verdicts changed although nothing was run");
});
await step("preview says nothing would change", () => ok(["preview", "--expect-no-changes"]));
await step("preview of a flip shows the harness's env entries and nothing else", async () => {
  await ok(["pulumi", "config", "set", "transport", "remote"], { quiet: true });
  try {
    const diff = JSON.parse((await ok(["pulumi", "preview", "--json", "--diff"], { quiet: true })).stdout);
    const problems = checkFlip(diff);
    must(problems.length === 0, problems.join("; "));
    console.error(`      changed: ${changedEnv(diff).join(", ")}`);
  } finally {
    await ok(["pulumi", "config", "set", "transport", "pods"], { quiet: true });
  }
});
await step("with TLS on the attach listener the worker verifies the relay, and the proof passes", async () => {
  await ok(["pulumi", "config", "set", "attachTls", "true"], { quiet: true });
  await ok(["up"]);
  const out = await outputs();
  const problems = checkOutputs(out);
  must(problems.length === 0, problems.join("; "));
  must(JSON.stringify(out.verdicts) !== JSON.stringify(first.verdicts), "the proof did not run again");
  const [c] = JSON.parse(docker("inspect", "dialout-worker"));
  must(["RELAY_TLS=1", "RELAY_TLS_CA_FILE="].every((e) => c.Config.Env.some((v) => v.startsWith(e))), `the worker does not use TLS: ${c.Config.Env}`);
  await ok(["preview", "--expect-no-changes"], { quiet: true });
});
await step("both transports pass the conformance battery against the cluster", async () => {
  const r = await run("node", ["scripts/live.mjs", "npx", "vitest", "run", "--project", "conformance"]);
  must(r.code === 0, `it ended with ${r.code ?? r.signal}`);
});
await step("the worker has no published port, no mount and no token in docker inspect", () => {
  const [c] = JSON.parse(docker("inspect", "dialout-worker"));
  must(Object.keys(c.HostConfig.PortBindings ?? {}).length === 0 && !c.HostConfig.PublishAllPorts, "ports are published");
  must(c.Mounts.length === 0, `mounts: ${JSON.stringify(c.Mounts)}`);
  must(!c.Config.Env.some((e) => /^SANDBOX_TOKEN=/.test(e)), "SANDBOX_TOKEN is in the container's environment");
});
await step("with the worker gone, the proof fails, says which check, and keeps its evidence", async () => {
  docker("stop", "-t", "2", "dialout-worker");
  const r = await demo(["prove"]);
  must(r.code === 1, `./demo prove ended with ${r.code}, expected 1`);
  const out = await outputs();
  must(out.proof === "failed", `output proof is ${out.proof}`);
  must(out.evidence.some((e) => !e.ok && /presence|worker/.test(e.check)), `no failed check names the worker: ${out.evidence.filter((e) => !e.ok).map((e) => e.check)}`);
});
await step("with the worker back, the proof passes again, and so do the vignettes", async () => {
  docker("start", "dialout-worker");
  await ok(["prove", "--vignettes"]);
  const out = await outputs();
  must(out.proof === "passed", "output proof is not 'passed'");
  must(out.vignettes.length === 1 && out.vignettes[0].status === "passed" && out.vignettes[0].evidence.length > 10, `output vignettes is ${JSON.stringify(out.vignettes)}`);
});
await step("the node and the worker start again, as after a reboot, and the proof passes", async () => {
  docker("restart", "dialout-control-plane", "dialout-worker");
  await ok(["prove"]);
  must((await outputs()).proof === "passed", "output proof is not 'passed'");
});
await step("a cluster deleted by hand is said, and down takes the rest", async () => {
  docker("rm", "-f", "-v", "dialout-control-plane");
  const r = await demo(["up"]);
  must(r.code === 2 && /is gone/.test(r.all), `./demo up ended with ${r.code}, expected 2 and why`);
});
await step("down leaves nothing", async () => {
  await ok(["down"]);
  nothingLeft();
});
broken = undefined;
const killedUp = async (interruptAfter, next) => {
  must((await demo(["up"], { interruptAfter })).interrupted, "the up ended before it could be killed");
  const after = await ok([next]);
  must(/was killed; ending what it left running/.test(after.all), `the ${next} did not say that it ended the killed run's processes`);
};
await step("an up that is killed while the cluster is made can be taken down", async () => {
  await killedUp(/kind-cluster creating/, "down");
  nothingLeft();
});
await step("an up that is killed with the cluster up and half of its content made can be gone on with, and taken down", async () => {
  await killedUp(/base:knative-serving creating/, "up");
  const problems = checkOutputs(await outputs());
  must(problems.length === 0, problems.join("; "));
  await ok(["down"]);
  nothingLeft();
});
await step("a cluster of our name that the stack does not own is refused and left alone", async () => {
  const image = docker("images", "-q", "lab/redis").split("\n")[0] || docker("images", "-q").split("\n")[0];
  docker("create", "--name", "dialout-control-plane", "--label", "io.x-k8s.kind.cluster=dialout", "--label", "io.x-k8s.kind.role=control-plane", "--entrypoint", "/bin/true", image);
  try {
    const r = await demo(["up"]);
    must(r.code === 2, `./demo up ended with ${r.code}, expected 2`);
    must(/dialout/.test(r.all) && /(not own|does not know|not made by)/i.test(r.all), "the message does not say that the cluster is somebody else's");
    await ok(["down"]);
    must(docker("ps", "-aq", "--filter", "name=dialout-control-plane") !== "", "the foreign container was removed");
  } finally {
    docker("rm", "-f", "dialout-control-plane");
  }
});

if (process.argv.includes("--existing")) {
  await step("in a cluster of the user's the proof passes, a preview stays quiet, and down leaves that cluster as it was", async () => {
    const ours = env.DIALOUT_STACK;
    env.DIALOUT_STACK = theirStack;
    const theirs = new UsersCluster(env);
    try {
      theirs.make(path.join(root, `Pulumi.${usual}.yaml`), path.join(root, `Pulumi.${theirStack}.yaml`));
      await ok(["up"]);
      const problems = checkOutputs(await outputs());
      must(problems.length === 0, problems.join("; "));
      await ok(["preview", "--expect-no-changes"], { quiet: true });
      theirs.stopPublishing();
      await ok(["down"]);
      const differences = theirs.differences();
      must(differences.length === 0, differences.join("; "));
      nothingLeft();
    } finally {
      theirs.remove();
      env.DIALOUT_STACK = ours;
    }
  });
}

const passed = results.filter((r) => r.ok).length;
const failed = results.length - passed;
const file = arg("--results");
if (file) writeFileSync(file, JSON.stringify({ plugins, passed, failed, results }, null, 2));
if (failed === 0) rmSync(stateDir, { recursive: true, force: true });
else console.error(`state kept for a look: ${stateDir}`);
console.error(`e2e (${plugins} plugins): ${passed} passed, ${failed} failed in ${Math.round((Date.now() - began) / 1000)} s`);
process.exit(failed ? 1 : 0);
