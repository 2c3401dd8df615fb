// For tests: a relay process, and scripted peers that speak the wire with grpc-js and nothing of ours but the messages.
import { startProgram, until, type Running } from "@dialout/common/testkit";
import { Exec, ExecEvent, ExecRequest, Hello, SandboxExecClient, SandboxWorkerClient, ServerFrame, WorkerFrame } from "@dialout/proto";
import { Metadata, credentials, type ClientDuplexStream, type ClientOptions, type ClientReadableStream, type ServiceError, type StatusObject } from "@grpc/grpc-js";

export const WORKER_TOKEN = "worker-secret-1";
export const EXEC_TOKEN = "exec-secret-1";

export interface RelayProcess {
  process: Running;
  attach: string;
  exec: string;
  health: string;
}

/** Starts the relay on ports of its own and waits until it listens. `env` overrides. */
export async function startRelayProcess(redisUrl: string, env: Record<string, string> = {}): Promise<RelayProcess> {
  const process = startProgram("relay", {
    SH_RELAY_HOST: "127.0.0.1",
    SH_RELAY_PORT: "0",
    SH_RELAY_EXEC_PORT: "0",
    SH_RELAY_HEALTH_PORT: "0",
    SH_RELAY_TOKEN: WORKER_TOKEN,
    SH_RELAY_EXEC_TOKEN: EXEC_TOKEN,
    SH_RELAY_DRAIN_MS: "500",
    REDIS_URL: redisUrl,
    ...env,
  });
  const port = async (line: RegExp) => `127.0.0.1:${/listening on :(\d+)/.exec(await process.line(line))?.[1]}`;
  const attach = await port(/sandbox-relay listening on :\d+/);
  return { process, attach, exec: await port(/exec listening on :\d+/), health: await port(/health listening on :\d+/) };
}

export function bearer(token: string | undefined): Metadata {
  const metadata = new Metadata();
  if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
  return metadata;
}

export const hello = (fields: Partial<Hello> = {}): Hello => Hello.fromPartial({ sandboxId: "sbx-1", capacityMax: 4, capabilities: ["bash"], protocol: 1, instanceId: "instance-1", journalId: "journal-1", ...fields });

/** A worker that does what the test says. It collects the relay's frames and how its stream ended. */
export class ScriptedWorker {
  readonly frames: ServerFrame[] = [];
  status: StatusObject | undefined;
  readonly client: SandboxWorkerClient;
  readonly stream: ClientDuplexStream<WorkerFrame, ServerFrame>;
  /** Answers an Exec; set by the test. */
  onExec: (exec: Exec) => void = () => undefined;

  constructor(address: string, token: string | undefined = WORKER_TOKEN, options: ClientOptions = {}, creds = credentials.createInsecure()) {
    this.client = new SandboxWorkerClient(address, creds, options);
    this.stream = this.client.attach(bearer(token));
    this.stream.on("data", (frame: ServerFrame) => {
      this.frames.push(frame);
      if (frame.msg?.$case === "exec") this.onExec(frame.msg.value);
    });
    this.stream.on("status", (s: StatusObject) => (this.status = s));
    this.stream.on("error", () => undefined);
  }

  send(msg: WorkerFrame["msg"]): void {
    this.stream.write({ msg });
  }

  hello(fields: Partial<Hello> = {}): this {
    this.send({ $case: "hello", value: hello(fields) });
    return this;
  }

  chunk(reqId: bigint, data: Buffer | string, offset = 0n, stream = 1): void {
    this.send({ $case: "chunk", value: { reqId, data: Buffer.from(data), stream, offset } });
  }

  end(reqId: bigint, exitCode = 0): void {
    this.send({ $case: "end", value: { reqId, exitCode, stdoutTruncated: false, stderrTruncated: false, stdoutBytes: 0n, stderrBytes: 0n, signal: "", kill: undefined, replayed: false, durationMs: 0n } });
  }

  error(reqId: bigint, message: string, code = ""): void {
    this.send({ $case: "error", value: { reqId, message, code, kill: undefined, replayed: false } });
  }

  accepted(reqId: bigint, state = "running"): void {
    this.send({ $case: "accepted", value: { reqId, state } });
  }

  got<C extends NonNullable<ServerFrame["msg"]>["$case"]>(kind: C, count = 1): Promise<Extract<NonNullable<ServerFrame["msg"]>, { $case: C }>["value"]> {
    return until(`worker gets ${count} ${kind} frame(s), got ${this.frames.map((f) => f.msg?.$case)}`, () => {
      const hits = this.frames.map((f) => f.msg).filter((m) => m?.$case === kind);
      return hits[count - 1]?.value as never;
    });
  }

  ended(): Promise<StatusObject> {
    return until("the attach stream ends", () => this.status);
  }

  close(): void {
    this.stream.cancel();
    this.client.close();
  }
}

export interface ExecResult {
  events: NonNullable<ExecEvent["event"]>[];
  status: StatusObject;
}

/** One Exec call and what came back. */
export class ScriptedExec {
  readonly events: NonNullable<ExecEvent["event"]>[] = [];
  status: StatusObject | undefined;

  constructor(readonly stream: ClientReadableStream<ExecEvent>, read = true) {
    if (read) stream.on("data", (e: ExecEvent) => this.events.push(e.event as NonNullable<ExecEvent["event"]>));
    stream.on("status", (s: StatusObject) => (this.status = s));
    stream.on("error", () => undefined);
  }

  /** Reads one event and then no more, until `resume`. (A grpc-js stream that is never read at all does not push back.) */
  stall(): void {
    this.stream.on("data", this.takeOne);
  }

  private readonly takeOne = () => this.stream.pause();

  resume(onEvent: (event: NonNullable<ExecEvent["event"]>) => void): void {
    this.stream.off("data", this.takeOne);
    this.stream.on("data", (e: ExecEvent) => e.event && onEvent(e.event)).resume();
  }

  done(ms?: number): Promise<StatusObject> {
    return until("the exec call ends", () => this.status, ms);
  }

  output(stream = 1): Buffer {
    return Buffer.concat(this.events.flatMap((e) => (e.$case === "chunk" && e.value.stream === stream ? [e.value.data] : [])));
  }

  kinds(): string[] {
    return this.events.map((e) => e.$case);
  }
}

export class ScriptedCaller {
  readonly client: SandboxExecClient;

  constructor(address: string, readonly token: string | undefined = EXEC_TOKEN, options: ClientOptions = {}) {
    this.client = new SandboxExecClient(address, credentials.createInsecure(), options);
  }

  exec(exec: Partial<Exec> = {}, sandboxId = "sbx-1", read = true): ScriptedExec {
    const request = ExecRequest.fromPartial({ sandboxId, exec: { reqId: 1n, command: "true", streaming: true, ...exec } });
    return new ScriptedExec(this.client.exec(request, bearer(this.token)), read);
  }

  raw(request: ExecRequest): ScriptedExec {
    return new ScriptedExec(this.client.exec(request, bearer(this.token)));
  }

  abort(reqId: bigint, sandboxId = "sbx-1", execId = ""): Promise<ServiceError | null> {
    return new Promise((resolve) => this.client.abort({ sandboxId, reqId, execId }, bearer(this.token), (e) => resolve(e)));
  }

  describe(sandboxId = "sbx-1"): Promise<{ error: ServiceError | null; response: unknown }> {
    return new Promise((resolve) => this.client.describe({ sandboxId }, bearer(this.token), (error, response) => resolve({ error, response })));
  }

  close(): void {
    this.client.close();
  }
}

/** A metric's value from the health listener; labels as they are printed, for example `{reason="invalid"}`. */
export async function metric(relay: RelayProcess, name: string): Promise<number> {
  const text = await (await fetch(`http://${relay.health}/metrics`)).text();
  const line = text.split("\n").find((l) => l.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1) ?? 0);
}

/** Resident memory of a process in bytes. */
export async function rss(pid: number): Promise<number> {
  const { readFile } = await import("node:fs/promises");
  const kb = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kb) * 1024;
}
