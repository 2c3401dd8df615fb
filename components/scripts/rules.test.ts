import path from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";

interface Node { id: string; name: string; networkMode: string }
interface Rules {
  ownership(found: { cluster: string; owner: string; network?: { name: string; labels: Record<string, string> }; nodes: Node[] }): { kind: string; what?: string; remove?: string };
  explainKind(stderr: string, image: string): string;
  refusal(cluster: string, found: { what: string; remove: string }): string;
  fullName(ref: string): string;
  missing(wanted: { name: string; id: string }[], present: { images: { id: string; repoTags?: string[] }[] }): string[];
}
let rules: Rules;
const load = async (file: string) => (await import(pathToFileURL(path.join(__dirname, file)).href)) as Partial<Rules>;
beforeAll(async () => {
  rules = { ...(await load("kind-rules.mjs")), ...(await load("load-rules.mjs")) } as Rules;
});

describe("who owns a cluster", () => {
  const network = (owner?: string) => ({ name: "dialout", labels: owner ? { "dev.dialout.owner": owner } : {} as Record<string, string> });
  const node = (networkMode: string): Node => ({ id: "1", name: "dialout-control-plane", networkMode });
  const kind = (n: ReturnType<typeof network> | undefined, nodes: Node[]) => rules.ownership({ cluster: "dialout", owner: "me", network: n, nodes }).kind;

  it("nothing there: free", () => expect(kind(undefined, [])).toBe("free"));
  it("our network, no node yet: half made by us", () => expect(kind(network("me"), [])).toBe("ours"));
  it("our network and a node made on it: ours", () => expect(kind(network("me"), [node("dialout")])).toBe("ours"));
  it("a node on the usual kind network: somebody's", () => expect(kind(undefined, [node("kind")])).toBe("foreign"));
  it("our network, but the node was made elsewhere: somebody's", () => expect(kind(network("me"), [node("kind")])).toBe("foreign"));
  it("another stack's network: somebody's", () => expect(kind(network("other"), [node("dialout")])).toBe("foreign"));
  it("an unmarked network of that name: somebody's", () => expect(kind(network(), [])).toBe("foreign"));
  it("the refusal says what, that it was left alone, and both ways out", () => {
    const found = rules.ownership({ cluster: "dialout", owner: "me", nodes: [node("kind")] });
    expect(rules.refusal("dialout", { what: found.what!, remove: found.remove! })).toMatch(/does not own; it was left alone.*clusterName dialout-2.*kind delete cluster --name dialout/);
  });
});

it.each([
  ["spawn kind ENOENT", /kind command is not on PATH/],
  ["ERROR: failed to create cluster: ... Bind for 127.0.0.1:80 failed: port is already allocated", /port that the cluster needs is in use/],
  ["ERROR: failed to create cluster: failed to pull image \"x\": exit status 1", /node image x cannot be pulled.*nodeImage/],
  ["ERROR: could not find a log line; too many open files", /inotify/],
  ["ERROR: something new", /something new.*demo doctor/],
])("kind's %j is explained", (stderr, message) => expect(rules.explainKind(stderr, "x")).toMatch(message));

it.each([
  ["redis:7", "docker.io/library/redis:7"],
  ["kindest/node:v1", "docker.io/kindest/node:v1"],
  ["dev.local/dialout-relay:abc", "dev.local/dialout-relay:abc"],
  ["localhost:5000/x", "localhost:5000/x:latest"],
  ["lab/redis:7", "docker.io/lab/redis:7"],
])("containerd knows %s as %s", (ref, full) => expect(rules.fullName(ref)).toBe(full));

it("loads what is absent and what has other content, nothing else", () => {
  const present = { images: [{ id: "sha256:1", repoTags: ["docker.io/library/a:1"] }, { id: "sha256:2", repoTags: ["docker.io/library/b:1"] }, { id: "sha256:3" }] };
  expect(rules.missing([{ name: "a:1", id: "sha256:1" }, { name: "b:1", id: "sha256:9" }, { name: "c:1", id: "sha256:3" }], present)).toEqual(["b:1", "c:1"]);
});
