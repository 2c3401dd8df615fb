// Who owns a kind cluster, decided from what Docker says; pure, so that every case has a test.
//
// The mark is a label on the cluster's own Docker network, which is made first and removed last: so also a cluster that is
// half made, or half removed, is recognised. Its nodes count as ours when they were created on that network.

export const OWNER = "dev.dialout.owner";
export const STACK = "dev.dialout.stack";

/**
 * @typedef {{ name: string, labels: Record<string, string> }} Network
 * @typedef {{ id: string, name: string, networkMode: string }} Node
 * @param {{ cluster: string, owner: string, network: Network | undefined, nodes: Node[] }} found
 * @returns {{ kind: "free" } | { kind: "ours" } | { kind: "foreign", what: string, remove: string }}
 */
export function ownership({ cluster, owner, network, nodes }) {
  const ourNetwork = network?.labels[OWNER] === owner;
  const foreign = nodes.filter((n) => !(ourNetwork && n.networkMode === cluster));
  if (foreign.length) return { kind: "foreign", what: `a kind cluster '${cluster}' (container ${foreign[0].name})`, remove: `kind delete cluster --name ${cluster}` };
  if (network && !ourNetwork) return { kind: "foreign", what: `a Docker network '${cluster}'`, remove: `docker network rm ${cluster}` };
  return network ? { kind: "ours" } : { kind: "free" };
}

/** @param {string} cluster @param {{ what: string, remove: string }} found */
export function refusal(cluster, found) {
  return `${found.what} exists that this stack does not own; it was left alone. Take another name: pulumi config set dialout:clusterName ${cluster}-2 - or, if nobody needs it: ${found.remove}`;
}

/**
 * What to tell the user when `kind create cluster` failed.
 * @param {string} stderr kind's @param {string} image of the node
 */
export function explainKind(stderr, image) {
  const said = stderr.split("\n").map((l) => l.trim()).filter((l) => /error/i.test(l)).slice(-1)[0] ?? stderr.trim().split("\n").slice(-1)[0] ?? "";
  if (/ENOENT/.test(stderr)) return "the kind command is not on PATH. Install it (https://kind.sigs.k8s.io/docs/user/quick-start/#installation), then run the same command again";
  if (/port is already allocated|address already in use/i.test(stderr)) return `a port that the cluster needs is in use (${said}). See what holds it: docker ps --format '{{.Names}} {{.Ports}}'`;
  if (/pull access denied|manifest unknown|not found: manifest|failed to pull image|no such host|connection refused.*registry|TLS handshake/i.test(stderr)) {
    return `the node image ${image} cannot be pulled (${said}). Check the network, or name one that is there: pulumi config set dialout:nodeImage IMAGE`;
  }
  if (/too many open files|inotify/i.test(stderr)) return `the inotify limits are too low (${said}). Raise them: sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512`;
  if (/no space left/i.test(stderr)) return "the disk is full. See what can go: docker system df";
  return `kind could not create the cluster: ${said}. What it printed is above; ./demo doctor checks this machine`;
}
