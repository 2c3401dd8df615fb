// For tests only: the proof's world out of real programs (Redis, relay, worker, model endpoint, three harnesses) on one machine,
// without a cluster and without Docker. Pods are folders behind a fake kubectl, the worker's container is a folder as well.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { startProgram, startRedis, type RedisServer, type Running } from "@dialout/common/testkit";
import { GrpcRelayTransport } from "@dialout/transports";
import { ALPINE, EXEC_TOKEN, FakeCluster, Harness, REDHAT, Relay, SELECTOR, startModel, WORKER_TOKEN } from "../harness/src/testkit";
import { TcpProxy } from "../transports/src/testkit/tcp-proxy";
import { request } from "./http";
import { parseInput, type ProofInput } from "./input";
import type { ArmState, ExecOutput, Inspected, World } from "./ports";
import type { Where } from "./prove";
import { bareExec, type Stage } from "./stage";
import { Store } from "./store";

/** Relative to whoever runs: pods and worker are folders of one file system here. */
export const HERE: Where = { osRelease: "/proc/self/cwd/os-release", markers: "/proc/self/cwd" };
const REMOTE_ONLY = "sh.kagenti.io/sandbox-pool=remote-only";
const WORKER = "sbx-test";

/** As `docker exec` and `kubectl exec` do it, in a folder. */
function execIn(folder: string, command: readonly string[], stdin = ""): Promise<ExecOutput> {
  return new Promise((resolve) => {
    const child = execFile(command[0]!, command.slice(1), { cwd: folder }, (e, stdout, stderr) => resolve({ stdout, stderr, exitCode: e ? Number(e.code ?? 1) : 0 }));
    // A command that reads no input may be gone before it is written.
    child.stdin!.on("error", () => {}).end(stdin);
  });
}

function dial(port: number): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const s = net.connect(port, "127.0.0.1", () => resolve(s)).once("error", reject);
  });
}

export class LocalWorld {
  readonly folder = mkdtempSync(path.join(tmpdir(), "proof-worker-"));
  readonly pods = new FakeCluster({ "pool-0": ALPINE, "pool-1": ALPINE });
  readonly arms: Record<string, { harness: Harness; env: Record<string, string> }> = {};
  redis!: RedisServer;
  relay!: Relay;
  link!: TcpProxy;
  worker!: Running;
  readonly input: ProofInput = parseInput({
    kubeconfig: "not used", arms: { pods: "arm-pods", remote: "arm-remote", miswired: "arm-miswired" },
    ingress: { namespace: "i", service: "i", port: 80 }, redis: { service: "redis", port: 6379 },
    poolSelector: SELECTOR, remoteSelector: REMOTE_ONLY, worker: { container: "worker", id: WORKER }, model: { label: "scripted", scripted: true },
  });
  private readonly stops: (() => Promise<unknown> | void)[] = [];
  private store: Store | undefined;

  /** The relay and a worker that reaches it through a link that can be cut. `relay`: its further settings. */
  async startRelayAndWorker(): Promise<this> {
    this.redis = await startRedis();
    this.relay = await Relay.start(this.redis.url);
    this.link = await new TcpProxy({ port: Number(this.relay.attach.split(":")[1]) }).start();
    writeFileSync(path.join(this.folder, "os-release"), REDHAT);
    await this.startWorker();
    return this;
  }

  async startHarnesses(): Promise<this> {
    const model = await startModel();
    this.stops.push(() => model.process.stop());
    const common = { ANTHROPIC_BASE_URL: model.url, REDIS_URL: this.redis.url, KUBECTL: this.pods.kubectl };
    const envs = { "arm-pods": { KAGENTI_SANDBOX_POOL_SELECTOR: SELECTOR }, "arm-remote": this.relay.env(), "arm-miswired": { ...this.relay.env(), KAGENTI_SANDBOX_POOL_SELECTOR: SELECTOR } };
    for (const [name, env] of Object.entries(envs)) {
      const harness = await Harness.start({ ...common, ...env });
      this.arms[name] = { harness, env };
      this.stops.push(() => harness.process.stop());
    }
    return this;
  }

  async startWorker(): Promise<void> {
    const state = path.join(this.folder, ".state");
    this.worker = startProgram("remote-worker", {
      RELAY_ADDR: this.link.addr, SANDBOX_ID: WORKER, SANDBOX_TOKEN: WORKER_TOKEN, SANDBOX_CWD: this.folder, WORKER_STATE_DIR: state, SANDBOX_ISOLATION: "none",
    });
    await this.worker.line(/attached, serving execs/);
  }

  async stop(): Promise<void> {
    await this.store?.close();
    for (const s of this.stops.reverse()) await s();
    await this.worker?.stop();
    await this.link?.stop();
    await this.relay?.process.stop();
    await this.redis?.stop();
    this.pods.remove();
    rmSync(this.folder, { recursive: true, force: true });
  }

  world(): World {
    this.store ??= new Store(() => dial(this.redis.port));
    const port = (name: string) => Number(new URL(this.arms[name]!.harness.url).port);
    const call = async (arm: string, method: string, where: string, body?: unknown) => request(await dial(port(arm)), `${arm}.test`, method, where, 60_000, body);
    return {
      logLagMs: 5_000,
      store: this.store,
      cluster: {
        server: "processes",
        version: async () => "of this machine",
        runningPods: async (s) => (s === SELECTOR ? ["pool-0", "pool-1"].map((name) => ({ name, ports: {} })) : []),
        exec: (pod, command) => execIn(this.pods.path(pod), command),
        secret: async () => ({ SH_RELAY_TOKEN: WORKER_TOKEN, SH_RELAY_EXEC_TOKEN: EXEC_TOKEN }),
        arm: async (name): Promise<ArmState> => ({ env: this.arms[name]!.env, ready: true, latestCreated: "r", latestReady: "r" }),
        log: async () => this.relay.process.output(),
        connect: () => dial(this.redis.port),
      },
      harness: { health: (arm) => call(arm, "GET", "/health"), run: (arm, body) => call(arm, "POST", "/runs", body) },
      model: { probe: async () => ({ url: "local", status: 200 }) },
      worker: {
        inspect: async () => ({ parsed: this.container(), raw: "{}" }),
        imageEnv: async () => [],
        exec: async (command, stdin) => (command[2]?.includes("/proc/net/tcp") ? { stdout: "local_address", stderr: "", exitCode: 0 } : execIn(this.folder, command, stdin)),
        log: async () => this.worker.output(),
      },
    };
  }

  private container(): Inspected {
    const running = this.worker.exit === undefined;
    return {
      Id: "0".repeat(64), Image: "i", State: { Running: running, Status: running ? "running" : "exited" },
      Config: { Env: [`SANDBOX_ID=${WORKER}`, "RELAY_ADDR=x", "SANDBOX_TOKEN_FILE=y"] },
      HostConfig: { NetworkMode: "n" }, Mounts: [], NetworkSettings: {},
    };
  }

  stage(): Stage {
    const transport = new GrpcRelayTransport({ addr: this.relay.exec, sandboxId: WORKER, execToken: EXEC_TOKEN, graceMs: 60_000 });
    return {
      transport,
      bare: (command, timeoutS) => bareExec(this.relay.exec, WORKER, EXEC_TOKEN, command, timeoutS),
      freeze: async () => this.worker.signal("SIGSTOP"),
      thaw: async () => this.worker.signal("SIGCONT"),
      cut: async () => this.link.cut(),
      mend: async () => this.link.heal(),
      stop: () => this.worker.stop("SIGKILL"),
      start: () => this.startWorker(),
      restartRelay: async () => {
        await this.relay.process.stop("SIGKILL");
        await this.relay.start();
      },
      close: () => transport.close(),
    };
  }
}
