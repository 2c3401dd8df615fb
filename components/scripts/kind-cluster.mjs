// The owned kind cluster.
//   create       makes it (or makes it anew when an interrupted run of ours left half of it); prints its kubeconfig
//   kubeconfig   prints the kubeconfig of the one that is there
//   delete       removes it; fine when somebody already did
//   sweep STACK  removes clusters of that stack which no state knows of (an `up` that was killed)
// Variables: CLUSTER_NAME, CLUSTER_OWNER, CLUSTER_STACK, NODE_IMAGE. The user's kubeconfig is neither read nor written: kind gets a
// private file, and nodes are removed with docker, because `kind delete` edits the kubeconfig.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { docker, run, runScript, Unfit, variable } from "./lib.mjs";
import { explainKind, OWNER, ownership, refusal, STACK } from "./kind-rules.mjs";

const list = (text) => text.split("\n").filter(Boolean);

async function inspect(type, ids) {
  return ids.length ? JSON.parse(await docker(type, "inspect", ...ids)) : [];
}

async function look(cluster) {
  const nodes = await inspect("container", list(await docker("ps", "-aq", "--filter", `label=io.x-k8s.kind.cluster=${cluster}`)));
  const networks = await inspect("network", list(await docker("network", "ls", "-q", "--filter", `name=^${cluster}$`)));
  return {
    network: networks.map((n) => ({ name: n.Name, labels: n.Labels ?? {} }))[0],
    nodes: nodes.map((c) => ({ id: c.Id, name: c.Name.replace(/^\//, ""), networkMode: c.HostConfig.NetworkMode })),
  };
}

async function remove(cluster, { nodes, network }) {
  // -v: a node keeps /var on an anonymous volume
  if (nodes.length) await docker("rm", "-f", "-v", ...nodes.map((n) => n.id));
  if (!network) return;
  // The network is ours to remove, a container that somebody joined to it is not: that one only loses this network.
  for (const name of Object.values((await inspect("network", [cluster]))[0].Containers ?? {}).map((c) => c.Name)) {
    process.stderr.write(`container ${name} loses network ${cluster}\n`);
    await docker("network", "disconnect", "-f", cluster, name);
  }
  await docker("network", "rm", cluster);
}

async function create() {
  const cluster = variable("CLUSTER_NAME"), owner = variable("CLUSTER_OWNER"), image = variable("NODE_IMAGE");
  const found = await look(cluster);
  const whose = ownership({ cluster, owner, ...found });
  if (whose.kind === "foreign") throw new Unfit(refusal(cluster, whose));
  if (whose.kind === "ours") {
    process.stderr.write(`removing what an interrupted run left of cluster '${cluster}'\n`);
    await remove(cluster, found);
  }
  const dir = mkdtempSync(path.join(tmpdir(), "dialout-kind-"));
  let interrupted = false;
  for (const s of ["SIGINT", "SIGTERM"]) process.on(s, () => { interrupted = true; }); // kind gets it too and ends; then we tidy up
  try {
    await docker("network", "create", "--label", `${OWNER}=${owner}`, "--label", `${STACK}=${variable("CLUSTER_STACK")}`, cluster);
    // No --wait: what comes next waits for what it needs.
    const kind = await run("kind", ["create", "cluster", "--name", cluster, "--image", image, "--kubeconfig", path.join(dir, "config")], { env: { KIND_EXPERIMENTAL_DOCKER_NETWORK: cluster }, quiet: false });
    if (kind.code !== 0 || interrupted) {
      await remove(cluster, await look(cluster));
      throw new Unfit(interrupted ? "interrupted; what was made of the cluster is removed again" : explainKind(kind.stderr, image));
    }
    await kubeconfig();
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function kubeconfig() {
  const cluster = variable("CLUSTER_NAME");
  const r = await run("kind", ["get", "kubeconfig", "--name", cluster]);
  if (r.code !== 0) throw new Unfit(`the kubeconfig of cluster '${cluster}' cannot be read: ${r.stderr.trim().split("\n").slice(-1)[0]}`);
  process.stdout.write(r.stdout);
}

async function destroy() {
  const cluster = variable("CLUSTER_NAME");
  const found = await look(cluster);
  // Someone may have removed ours and made another of that name: that one stays.
  const whose = ownership({ cluster, owner: variable("CLUSTER_OWNER"), ...found });
  if (whose.kind === "ours") await remove(cluster, found);
  else if (whose.kind === "foreign") process.stderr.write(`left alone: ${whose.what} that this stack does not own\n`);
}

async function sweep() {
  const stack = process.argv[3];
  if (!stack) throw new Unfit("usage: kind-cluster.mjs sweep STACK");
  for (const cluster of list(await docker("network", "ls", "--filter", `label=${STACK}=${stack}`, "--format", "{{.Name}}"))) {
    const found = await look(cluster);
    const owner = found.network?.labels[OWNER] ?? "";
    if (ownership({ cluster, owner, ...found }).kind !== "ours") continue;
    process.stderr.write(`removing cluster '${cluster}', left by an interrupted run\n`);
    await remove(cluster, found);
  }
}

const commands = { create, kubeconfig, delete: destroy, sweep };
const command = commands[process.argv[2]];
if (!command) {
  process.stderr.write(`usage: kind-cluster.mjs ${Object.keys(commands).join(" | ")}\n`);
  process.exit(3);
}
await runScript(command);
