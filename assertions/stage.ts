// What the demonstrations do to the world, besides looking at it: run commands through the relay, and pull plugs.
import { Exec, SandboxExecClient, type ExecEvent } from "@dialout/proto";
import { GrpcRelayTransport, type SandboxTransport } from "@dialout/transports";
import { credentials, Metadata } from "@grpc/grpc-js";
import { bridge } from "./bridge";
import type { Cluster } from "./cluster";
import { docker } from "./container";
import type { ProofInput } from "./input";

/** An Exec without any timer of the caller's: whatever ends it is the worker's doing. */
export interface BareOutcome {
  exitCode?: number;
  error?: string;
  elapsedMs: number;
}

export interface Stage {
  readonly transport: SandboxTransport;
  bare(command: string, timeoutS: number): Promise<BareOutcome>;
  /** Stops the worker's process from running without ending it, and the opposite. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Takes the worker's network away without ending its process, and gives it back. */
  cut(): Promise<void>;
  mend(): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Ends the relay's pod and waits for the next one to be ready. */
  restartRelay(): Promise<void>;
  close(): Promise<void>;
}

/** Room for a relay restart or a network cut; the worker's own grace may be shorter. */
const GRACE_MS = 60_000;

/** The stage of a real cluster and a real container. Rejects when the relay's Secret has no exec token. */
export async function realStage(input: ProofInput, cluster: Cluster): Promise<Stage> {
  const { namespace, relay, worker } = input;
  const execToken = (await cluster.secret(relay.secret))?.SH_RELAY_EXEC_TOKEN;
  if (!execToken) throw new Error(`Secret ${relay.secret} has no SH_RELAY_EXEC_TOKEN`);
  const path = await bridge(() => cluster.connect({ namespace, service: relay.service, port: relay.execPort }));
  const transport = new GrpcRelayTransport({ addr: path.address, sandboxId: worker.id, execToken, graceMs: GRACE_MS });
  const network = await networkOf(worker.container);
  const act = async (...args: string[]) => {
    const r = await docker(args, "", 60_000);
    if (r.exitCode !== 0) throw new Error(`docker ${args.join(" ")}: ${r.stderr.trim()}`);
  };
  return {
    transport,
    bare: (command, timeoutS) => bareExec(path.address, worker.id, execToken, command, timeoutS),
    freeze: () => act("pause", worker.container),
    thaw: () => act("unpause", worker.container),
    cut: () => act("network", "disconnect", network, worker.container),
    mend: () => act("network", "connect", network, worker.container),
    stop: () => act("stop", "-t", "5", worker.container),
    start: () => act("start", worker.container),
    restartRelay: () => cluster.restart(relay.service),
    close: async () => {
      await transport.close();
      await path.close();
    },
  };
}

async function networkOf(container: string): Promise<string> {
  const r = await docker(["container", "inspect", "-f", "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}\n{{end}}", container]);
  const names = r.stdout.split("\n").filter(Boolean);
  if (r.exitCode !== 0 || names.length !== 1) throw new Error(`container ${container} must be in one network, it is in: ${names.join(", ") || r.stderr.trim() || "none"}`);
  return names[0]!;
}

/** Written against the base protocol alone: no id that would be redelivered, no deadline. */
export function bareExec(address: string, sandboxId: string, token: string, command: string, timeoutS: number): Promise<BareOutcome> {
  const client = new SandboxExecClient(address, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  const started = performance.now();
  return new Promise<BareOutcome>((resolve, reject) => {
    const reqId = BigInt(1 + Math.floor(Math.random() * (Number.MAX_SAFE_INTEGER - 1)));
    const exec = Exec.fromPartial({ reqId, command, timeoutS, streaming: true });
    let outcome: Omit<BareOutcome, "elapsedMs"> = {};
    const call = client.exec({ sandboxId, exec }, metadata);
    call.on("data", ({ event }: ExecEvent) => {
      if (event?.$case === "end") outcome = { exitCode: event.value.exitCode };
      if (event?.$case === "error") outcome = { error: event.value.message };
    });
    call.on("error", reject);
    call.on("end", () => resolve({ ...outcome, elapsedMs: Math.round(performance.now() - started) }));
  }).finally(() => client.close());
}
