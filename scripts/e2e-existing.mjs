// Part of the end-to-end test: the stack in a cluster that is the user's. A kind cluster stands in for it, made and removed here and
// not by the program; a port-forward stands in for whatever the user publishes the relay with.
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { dump, load } from "js-yaml";
import { root, toolPath } from "./demo/shell.mjs";

const CLUSTER = "e2e-mine", NAMESPACE = "dialout", PORT = 31443;
/** What users see of a cluster, by kind; a line for each object. */
const KINDS = "namespaces,customresourcedefinitions,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,apiservices";

export class UsersCluster {
  constructor(env) {
    this.env = { ...env, PATH: toolPath(env) };
    this.dir = mkdtempSync(path.join(tmpdir(), "e2e-mine-"));
    this.kubeconfig = path.join(this.dir, "kubeconfig");
  }

  /** Removes what a killed run of this test left: its cluster, and the worker of its stack. */
  static sweep(tryDocker, stack) {
    const left = [`label=io.x-k8s.kind.cluster=${CLUSTER}`, `label=dev.dialout.stack=${stack}`].flatMap((filter) => tryDocker("ps", "-aq", "--filter", filter).split("\n").filter(Boolean));
    if (left.length) tryDocker("rm", "-fv", ...left);
  }

  run(file, ...args) {
    return execFileSync(file, args, { env: this.env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
  }
  kubectl(...args) {
    return this.run("kubectl", "--kubeconfig", this.kubeconfig, ...args);
  }

  /** Makes the cluster and writes the settings of a stack that works in it. `usual`: the settings file that ./demo would use. */
  make(usual, settingsFile) {
    this.settingsFile = settingsFile;
    const settings = load(readFileSync(usual, "utf8"))?.config ?? {};
    const image = settings["dialout:nodeImage"] ?? JSON.parse(readFileSync(path.join(root, "deploy/versions.json"), "utf8")).kindNode;
    this.hadNetwork = this.run("docker", "network", "ls", "-q", "--filter", "name=^kind$") !== "";
    this.run("kind", "create", "cluster", "--name", CLUSTER, "--image", image, "--kubeconfig", this.kubeconfig, "--wait", "180s");
    this.before = this.look();
    const gateway = this.run("docker", "network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}");
    delete settings["dialout:extraManifests"];
    writeFileSync(settingsFile, dump({ config: {
      ...settings,
      "dialout:clusterMode": "existing", "dialout:kubeconfig": this.kubeconfig, "dialout:kubeContext": `kind-${CLUSTER}`, "dialout:namespace": NAMESPACE,
      "dialout:knative": "install", "dialout:relayAddress": `${gateway}:${PORT}`, "dialout:relayTls": "false",
      "dialout:imageLoadCommand": `kind load docker-image --name ${CLUSTER}`,
    } }));
    this.publish(gateway);
  }

  /** As a user would once the relay is there, and again whenever it ends. */
  publish(address) {
    const kubectl = `kubectl --kubeconfig '${this.kubeconfig}' -n ${NAMESPACE}`;
    // Not longer than this test lives, also when it is killed.
    const script = `while kill -0 ${process.pid}; do ${kubectl} wait --for=condition=Available deployment/sandbox-relay --timeout=300s && ${kubectl} port-forward --address ${address} service/sandbox-relay ${PORT}:8443; sleep 1; done`;
    this.publisher = spawn("bash", ["-c", script], { env: this.env, stdio: "ignore", detached: true });
  }

  look() {
    return { objects: this.kubectl("get", KINDS, "--output", "name", "--sort-by", ".metadata.name"), kubeconfig: createHash("sha256").update(readFileSync(this.kubeconfig)).digest("hex") };
  }

  /** What the stack left in the cluster, or took from it; an empty list when neither. */
  differences() {
    const now = this.look();
    const [was, is] = [this.before.objects, now.objects].map((t) => new Set(t.split("\n")));
    return [
      ...[...is].filter((o) => !was.has(o)).map((o) => `left: ${o}`),
      ...[...was].filter((o) => !is.has(o)).map((o) => `taken: ${o}`),
      ...(now.kubeconfig === this.before.kubeconfig ? [] : ["the kubeconfig was changed"]),
    ];
  }

  stopPublishing() {
    try {
      if (this.publisher) process.kill(-this.publisher.pid, "SIGKILL");
    } catch {
      // it is gone already
    }
  }

  remove() {
    this.stopPublishing();
    try {
      this.run("kind", "delete", "cluster", "--name", CLUSTER, "--kubeconfig", this.kubeconfig);
      if (!this.hadNetwork) this.run("docker", "network", "rm", "kind");
    } finally {
      if (this.settingsFile) rmSync(this.settingsFile, { force: true });
      rmSync(this.dir, { recursive: true, force: true });
    }
  }
}
