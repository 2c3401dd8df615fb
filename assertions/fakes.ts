// For tests only: an honest world in memory, every part of which a test can replace by a lie.
import { randomBytes, randomUUID } from "node:crypto";
import { Duplex } from "node:stream";
import { parseInput, type ProofInput } from "./input";
import type { ArmState, ExecOutput, HttpAnswer, Inspected, ModelProbe, World } from "./ports";

export const ALPINE = `NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.20.3\nPRETTY_NAME="Alpine Linux v3.20"\nHOME_URL="https://alpinelinux.org/"\n`;
export const RED_HAT = `NAME="Red Hat Enterprise Linux"\nVERSION="9.8 (Plow)"\nID="rhel"\nVERSION_ID="9.8"\nPRETTY_NAME="Red Hat Enterprise Linux 9.8 (Plow)"\n`;
export const DEBIAN_12 = `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nVERSION="12 (bookworm)"\nVERSION_CODENAME=bookworm\nID=debian\nHOME_URL="https://www.debian.org/"\n`;
export const DEBIAN_13 = DEBIAN_12.replaceAll("12", "13").replaceAll("bookworm", "trixie");

export const TOKEN = "0123456789abcdef0123456789abcdef";
export const MODEL_URL = "http://model-endpoint.default.svc:8080/v1/models";
const IMAGE_ENV = ["PATH=/usr/bin:/bin", "container=oci"];

export function testInput(change: Record<string, unknown> = {}): ProofInput {
  return parseInput({
    kubeconfig: "apiVersion: v1",
    arms: { pods: "arm-pods", remote: "arm-remote", miswired: "arm-miswired" },
    ingress: { namespace: "kourier-system", service: "kourier", port: 80 },
    redis: { service: "redis", port: 6379 },
    poolSelector: "pool=default",
    remoteSelector: "pool=remote-only",
    worker: { container: "dialout-worker", id: "sbx-laptop-demo" },
    model: { label: "scripted-1 (a script, not a model)", scripted: true },
    ...change,
  });
}

type Files = Map<string, string>;
type Box = { kind: string; name: string; files: Files };
export interface RunBody {
  sessionId: string;
  item: { item_id: string; file: string; pattern: string };
}

/** Behaves as a correct system does. A test overrides methods of it to build a lying one. */
export class FakeWorld {
  readonly podFiles: Files = new Map([["/etc/os-release", ALPINE]]);
  readonly workerFiles: Files = new Map([["/etc/os-release", RED_HAT]]);
  readonly keys = new Set<string>();
  readonly asked: { arm: string; body: RunBody }[] = [];
  pods = [{ name: "pool-0", ports: {} }, { name: "pool-1", ports: {} }];
  selectors: Record<string, number> = { "pool=default": 2, "pool=remote-only": 0 };
  presence: string | undefined = JSON.stringify({ sandboxId: "sbx-laptop-demo", labels: {}, capabilities: [], capacityMax: 4, transport: "grpc", lastSeenMs: 990_000 });
  now = 1_000_000;
  arms: Record<string, ArmState> = {
    "arm-pods": arm({ KAGENTI_SANDBOX_POOL_SELECTOR: "pool=default" }),
    "arm-remote": arm({ KAGENTI_SANDBOX_POOL_SELECTOR: "pool=remote-only", SH_REMOTE_SANDBOX: "1" }),
    "arm-miswired": arm({ KAGENTI_SANDBOX_POOL_SELECTOR: "pool=default", SH_REMOTE_SANDBOX: "1" }),
  };
  model: () => Promise<ModelProbe> = async () => ({ url: MODEL_URL, status: 200 });
  container: Inspected | undefined = {
    Id: "c0ffee".repeat(10),
    Image: "sha256:1",
    State: { Running: true, Status: "running" },
    Config: { Env: ["SANDBOX_ID=sbx-laptop-demo", "RELAY_ADDR=n:30443", "SANDBOX_TOKEN_FILE=/run/token", ...IMAGE_ENV] },
    HostConfig: { NetworkMode: "dialout", PortBindings: {}, PublishAllPorts: false },
    Mounts: [],
    NetworkSettings: { Ports: {} },
  };
  procNet = "  sl  local_address rem_address   st\n   0: 0B00007F:9C41 00000000:0000 0A\n";

  /** Where an arm's tool calls run, as the harness decides it. */
  route(armName: string): Box {
    const { env } = this.arms[armName]!;
    const pod = this.selectors[env.KAGENTI_SANDBOX_POOL_SELECTOR!] ? { kind: "pod", name: "pool-0", files: this.podFiles } : undefined;
    const remote = env.SH_REMOTE_SANDBOX === "1" ? { kind: "remote", name: "sbx-laptop-demo", files: this.workerFiles } : undefined;
    return (pod ?? remote)!;
  }

  /** What the worker and the relay wrote down, whatever the harness says. */
  readonly logs = { worker: "", relay: "" };

  /** The answer of an honest harness with the scripted model. */
  answer(armName: string, { item }: RunBody): Record<string, unknown> {
    const box = this.route(armName);
    const traceId = randomBytes(16).toString("hex"), execId = randomUUID();
    if (box.files === this.workerFiles) for (const hop of ["worker", "relay"] as const) this.logs[hop] += `${JSON.stringify({ exec_id: execId, trace: `00-${traceId}-0123456789abcdef-01` })}\n`;
    const sandbox = { kind: box.kind, name: box.name };
    const known = { sandbox, traceId, tools: [{ tool: "read", ok: true, ms: 1, execs: [{ execId }] }] };
    const content = box.files.get(item.file);
    if (content === undefined) return { status: "failed", reason: "no_verdict", ...known };
    const line = content.split("\n").find((l) => l.includes(item.pattern));
    const about = line ?? content.split("\n").find((l) => l.startsWith("PRETTY_NAME"));
    const reason = `${item.file} ${line ? "contains" : "does not contain"} "${item.pattern}": ${about}`;
    return { status: "done", verdict: { item_id: item.item_id, verdict: line ? "FLAGGED" : "CLEAR", reason }, ...known };
  }

  run(armName: string, body: RunBody): HttpAnswer {
    this.asked.push({ arm: armName, body });
    this.keys.add(`session:${body.sessionId}`);
    return { status: 200, body: JSON.stringify(this.answer(armName, body)), elapsedMs: 5 };
  }

  podExec(_pod: string, command: readonly string[]): ExecOutput {
    return command[0] === "test" ? result("", this.podFiles.has(command[2]!) ? 0 : 1) : cat(this.podFiles, command);
  }

  workerExec(command: readonly string[], stdin?: string): ExecOutput {
    const script = command[0] === "sh" ? command[2]! : "";
    const file = /'([^']+)'/.exec(script)?.[1];
    if (script.includes("/proc/net/tcp")) return result(this.procNet);
    if (script.startsWith("umask")) {
      this.workerFiles.set(file!, stdin!);
      return result(stdin!);
    }
    if (script.startsWith("rm")) return result("", this.workerFiles.delete(file!) || !this.workerFiles.has(file!) ? 0 : 1);
    return cat(this.workerFiles, command);
  }

  world(): World {
    return {
      cluster: {
        server: "https://127.0.0.1:6443",
        version: async () => "v1.34.4",
        runningPods: async (s) => this.pods.slice(0, this.selectors[s] ?? 0),
        exec: async (pod, command) => this.podExec(pod, command),
        secret: async () => ({ SH_RELAY_TOKEN: TOKEN, SH_RELAY_EXEC_TOKEN: `exec-${TOKEN}` }),
        arm: async (name) => this.arms[name]!,
        log: async () => this.logs.relay,
        connect: async () => new Duplex(),
      },
      harness: { health: async () => ({ status: 200, body: "ok", elapsedMs: 1 }), run: async (a, body) => this.run(a, body as RunBody) },
      store: {
        now: async () => this.now,
        presence: async () => this.presence,
        exists: async (keys) => keys.filter((k) => this.keys.has(k)).length,
        close: async () => {},
      },
      model: { probe: () => this.model() },
      worker: {
        inspect: async () => this.container && { parsed: this.container, raw: JSON.stringify(this.container) },
        imageEnv: async () => IMAGE_ENV,
        exec: async (command, stdin) => this.workerExec(command, stdin),
        log: async () => this.logs.worker,
      },
    };
  }
}

function arm(env: Record<string, string>): ArmState {
  return { env, ready: true, latestCreated: "r-00001", latestReady: "r-00001" };
}
const result = (stdout: string, exitCode = 0, stderr = ""): ExecOutput => ({ stdout, stderr, exitCode });
function cat(files: Files, command: readonly string[]): ExecOutput {
  const text = files.get(command[1]!);
  return text === undefined ? result("", 1, `cat: ${command[1]}: No such file`) : result(text);
}
