// Resources and their changes over time, tried on the genuine plugin and on the stand-in alike.
import type { Props, Value } from "../src/provider/values";

export interface Scenario {
  title: string;
  type: string;
  name: string;
  /** Inputs of the first `up`, then of each following one. */
  inputs: Props[];
  /** Shell commands run on the host before the first step; containers and the like that a case needs. */
  before?: string[];
  /** Run after the first step, before the first refresh: what somebody does by hand. */
  byHand?: string[];
  /** Command in the made container whose output must be equal. */
  inside?: string[];
  /** The first step must fail, with this in its message. */
  fails?: RegExp;
}

const CONTAINER = "docker:index/container:Container";
const NETWORK = "docker:index/network:Network";
const REMOTE_IMAGE = "docker:index/remoteImage:RemoteImage";
const TAG = "docker:index/tag:Tag";
const COMMAND = "command:local:Command";

const SLEEP = ["sleep", "1000"];

/** @param image to make containers of @param context folder with a Dockerfile and a broken `Dockerfile.bad` */
export function scenarios(image: string, context: string): Scenario[] {
  const container = (title: string, inputs: Props[], rest: Partial<Scenario> = {}): Scenario => ({
    title: `container: ${title}`,
    type: CONTAINER,
    name: "plugtry-c",
    inputs: inputs.map((one) => ({ name: "plugtry-c", image, command: SLEEP, destroyGraceSeconds: 1, ...one })),
    ...rest,
  });
  const legacy: Record<string, Value> = { context, dockerfile: "Dockerfile", buildArgs: { WHO: "one" }, useLegacyBuilder: true };
  const full: Record<string, Value> = {
    envs: ["B=2", "A=1"],
    uploads: [{ file: "/etc/hello", content: "hi\n" }, { file: "/opt/deep/run.sh", contentBase64: "IyEvYmluL3NoCg==", executable: true }, { file: "/etc/key", content: "k", permissions: "0400" }],
    capabilities: { adds: ["CAP_NET_ADMIN"], drops: ["ALL"] },
    securityOpts: ["no-new-privileges:true"],
    restart: "unless-stopped",
    init: true,
    labels: [{ label: "l", value: "v" }],
    hosts: [{ host: "h.local", ip: "10.0.0.1" }],
    user: "0",
    workingDir: "/tmp",
    tmpfs: { "/scratch": "size=1m" },
    memory: 64,
    memorySwap: 64,
    mustRun: true,
    start: true,
    rm: false,
    wait: false,
    logs: false,
    stopTimeout: 2,
    stopSignal: "SIGKILL",
    healthcheck: { tests: ["CMD", "true"], interval: "5s", timeout: "2s", retries: 2 },
  };
  return [
    container("every property, then one change after the other", [
      { ...full },
      { ...full, restart: "no" },
      { ...full, memory: 128, memorySwap: 256 },
      { ...full, envs: ["A=1", "B=2"] },
      { ...full, envs: ["A=1", "B=3"] },
      { ...full, command: ["sleep", "1001"] },
      { ...full, stopTimeout: 3 },
      { ...full, uploads: [{ file: "/etc/hello", content: "changed\n" }] },
      { ...full, labels: [{ label: "l", value: "w" }] },
      { ...full, destroyGraceSeconds: 0 },
    ], { inside: ["sh", "-c", "stat -c '%a %U %n' /etc/hello /opt/deep /opt/deep/run.sh /etc/key; cat /etc/hello /opt/deep/run.sh; pwd; echo $A$B; grep h.local /etc/hosts; grep scratch /proc/mounts | cut -d' ' -f1-3; head -c6 /proc/1/comm"] }),
    container("as little as can be", [{}, { healthcheck: { tests: ["CMD", "true"] } }, { user: "1" }, { readOnly: true }, { entrypoints: ["sleep"], command: ["999"] }]),
    container("memory without memorySwap", [{ memory: 64 }, { memory: 64 }]),
    container("a name of the plugin's choosing", [{ name: null }, { name: null, envs: ["X=1"] }, { name: "plugtry-c" }]),
    container("on two networks", [
      { networksAdvanced: [{ name: "plugtry-one", aliases: ["me", "myself"] }, { name: "plugtry-two" }] },
      { networksAdvanced: [{ name: "plugtry-one", aliases: ["me"] }] },
    ], { before: ["docker network create plugtry-one", "docker network create plugtry-two"] }),
    container("runs to its end with its logs", [{ command: ["sh", "-c", "echo out; echo err >&2; exit 3"], mustRun: false, attach: true, logs: true }]),
    container("not started", [{ start: false, mustRun: false }]),
    container("stopped by hand, then started by an up", [{ mustRun: true }, { mustRun: true }], { byHand: ["docker stop -t 0 plugtry-c"] }),
    container("removed by hand", [{}], { byHand: ["docker rm -f plugtry-c"] }),
    container("waits for health", [{ wait: true, waitTimeout: 20, healthcheck: { tests: ["CMD", "true"], interval: "500ms" } }]),
    container("its name is in use", [{}], { before: [`docker create --name plugtry-c ${image} true`], fails: /Conflict\. The container name "\/plugtry-c" is already in use/ }),
    container("no such program", [{ command: ["/nope"] }], { fails: /Unable to start container: .*"\/nope"/s }),
    container("no such network", [{ networksAdvanced: [{ name: "plugtry-absent" }] }], { fails: /network plugtry-absent not found/ }),
    container("no such image", [{ image: "plugtry-absent:1" }], { fails: /Unable to create container with image plugtry-absent:1: unable to pull image/ }),
    container("an upload without content", [{ uploads: [{ file: "/x" }] }], { fails: /one of 'content', '(contentBase64|content_base64)', or 'source' must be set/ }),
    { title: "network: plain", type: NETWORK, name: "n", inputs: [{ name: "plugtry-n" }, { name: "plugtry-n", internal: true }, { name: "plugtry-n", internal: true, labels: [{ label: "a", value: "b" }] }, { name: "plugtry-m" }] },
    { title: "network: every property", type: NETWORK, name: "n", inputs: [{ name: "plugtry-n", driver: "bridge", internal: false, attachable: true, labels: [{ label: "a", value: "b" }], options: { "com.docker.network.bridge.enable_icc": "true" }, ipamConfigs: [{ subnet: "172.30.250.0/24", gateway: "172.30.250.1" }] }] },
    { title: "network: removed by hand", type: NETWORK, name: "n", inputs: [{ name: "plugtry-n" }], byHand: ["docker network rm plugtry-n"] },
    { title: "network: its name is in use", type: NETWORK, name: "n", inputs: [{ name: "plugtry-n" }], before: ["docker network create plugtry-n"], fails: /network with name plugtry-n already exists/ },
    {
      title: "image: built, and built anew",
      type: REMOTE_IMAGE,
      name: "i",
      inputs: [
        { name: "plugtry-i:1", build: { ...legacy, labels: { built: "yes" }, tags: ["plugtry-i:extra"] }, triggers: { a: "1" }, forceRemove: true },
        { name: "plugtry-i:1", build: { ...legacy, buildArgs: { WHO: "two" }, labels: { built: "yes" }, tags: ["plugtry-i:extra"] }, triggers: { a: "1" }, forceRemove: true },
        { name: "plugtry-i:1", build: { ...legacy, buildArgs: { WHO: "two" }, labels: { built: "no" }, tags: ["plugtry-i:extra"] }, triggers: { a: "1" }, forceRemove: true },
        { name: "plugtry-i:1", build: { ...legacy, buildArgs: { WHO: "two" }, labels: { built: "no" }, tags: ["plugtry-i:extra"] }, triggers: { a: "2" }, forceRemove: true },
      ],
    },
    { title: "image: kept from now on", type: REMOTE_IMAGE, name: "i", inputs: [{ name: "plugtry-i:1", build: { ...legacy }, forceRemove: true }, { name: "plugtry-i:1", build: { ...legacy }, keepLocally: true }] },
    { title: "image: one more tag", type: REMOTE_IMAGE, name: "i", inputs: [{ name: "plugtry-i:1", build: { ...legacy }, keepLocally: true }, { name: "plugtry-i:1", build: { ...legacy, tags: ["plugtry-i:extra"] }, keepLocally: true }] },
    { title: "image: built by the other way, which loses labels", type: REMOTE_IMAGE, name: "i", inputs: [{ name: "plugtry-i:1", build: { context, buildArgs: { WHO: "one" }, labels: { built: "yes" } } }] },
    { title: "image: a new name for the new content", type: REMOTE_IMAGE, name: "i", inputs: [{ name: "plugtry-i:1", build: { ...legacy } }, { name: "plugtry-i:2", build: { ...legacy, buildArgs: { WHO: "two" } } }] },
    { title: "image: found locally", type: REMOTE_IMAGE, name: "i", inputs: [{ name: image, keepLocally: true }] },
    { title: "image: removed by hand", type: REMOTE_IMAGE, name: "i", inputs: [{ name: "plugtry-i:1", build: { context } }], byHand: ["docker rmi -f plugtry-i:1"] },
    { title: "image: not to be had", type: REMOTE_IMAGE, name: "i", inputs: [{ name: "plugtry-absent:1" }], fails: /unable to pull image plugtry-absent:1/ },
    { title: "image: a build that fails", type: REMOTE_IMAGE, name: "i", inputs: [{ name: "plugtry-i:1", build: { context, dockerfile: "Dockerfile.bad" } }], fails: /exit code: 9/ },
    { title: "tag", type: TAG, name: "t", inputs: [{ sourceImage: image, targetImage: "plugtry-t:1" }, { sourceImage: image, targetImage: "plugtry-t:2" }] },
    { title: "tag: no such image", type: TAG, name: "t", inputs: [{ sourceImage: "plugtry-absent:1", targetImage: "plugtry-t:1" }], fails: /plugtry-absent:1/ },
    {
      title: "command: output, environment, change, removal",
      type: COMMAND,
      name: "k",
      inputs: [
        { create: "echo out $V; echo err >&2; cat", stdin: "in", environment: { V: "1" }, delete: "true", interpreter: ["/bin/bash", "-c"], dir: "/tmp", triggers: ["x", { y: [1] }] },
        { create: "echo out $V; echo $PULUMI_COMMAND_STDERR >&2", environment: { V: "2", W: "3" }, delete: "true", interpreter: ["/bin/bash", "-c"], dir: "/tmp", triggers: ["x", { y: [1] }] },
        { create: "echo never", update: "echo updated from $PULUMI_COMMAND_STDOUT; pwd", environment: { V: "2" }, delete: "true", triggers: ["x", { y: [1] }] },
        { create: "echo never", update: "echo $PULUMI_COMMAND_STDOUT.", addPreviousOutputInEnv: false, triggers: ["x", { y: [1] }] },
        { create: "echo never", triggers: ["x", { y: [2] }] },
        { create: "printf 'two\\n\\n'", triggers: ["x"], logging: "none" },
        { update: "echo only an update", logging: "stderr" },
        {},
      ],
    },
    { title: "command: nothing to do", type: COMMAND, name: "k", inputs: [{}, { triggers: ["a"] }, { delete: "exit 0" }] },
    { title: "command: fails", type: COMMAND, name: "k", inputs: [{ create: "echo out; echo err >&2; exit 4" }], fails: /exit status 4: running "echo out; echo err >&2; exit 4":\n(out\nerr|err\nout)/ },
    { title: "command: killed", type: COMMAND, name: "k", inputs: [{ create: "kill -9 $$" }], fails: /signal: killed: running "kill -9 \$\$":/ },
    { title: "command: no such folder", type: COMMAND, name: "k", inputs: [{ create: "true", dir: "/absent" }], fails: /chdir \/absent: no such file or directory/ },
    { title: "command: no such interpreter", type: COMMAND, name: "k", inputs: [{ create: "true", interpreter: ["/absent"] }], fails: /fork\/exec \/absent: no such file or directory/ },
  ];
}
