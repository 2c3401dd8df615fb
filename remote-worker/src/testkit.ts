// For tests only: a relay that does what the test says, and a worker process against it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Metadata, Server, ServerCredentials, status, type ServerDuplexStream } from "@grpc/grpc-js";
import { SandboxWorkerService, Stream, type Accepted, type End, type Exec, type ExecError, type Hello, type ServerFrame, type WorkerFrame } from "@dialout/proto";
import { startProgram, until, type Running } from "@dialout/common/testkit";

type Wire = ServerDuplexStream<WorkerFrame, ServerFrame>;

/** What came back for one request on one session. */
export class Answer {
  stdout: Buffer[] = [];
  stderr: Buffer[] = [];
  offsets: { stream: "stdout" | "stderr"; at: number; length: number }[] = [];
  accepted: Accepted[] = [];
  end: End | undefined;
  error: ExecError | undefined;
  terminals = 0;

  get out(): string {
    return Buffer.concat(this.stdout).toString("utf8");
  }
  get err(): string {
    return Buffer.concat(this.stderr).toString("utf8");
  }
  get bytes(): number {
    return [...this.stdout, ...this.stderr].reduce((n, b) => n + b.length, 0);
  }
  async done(ms = 20_000): Promise<this> {
    await until(`a terminal frame; got ${JSON.stringify(this.out.slice(-200))} / ${JSON.stringify(this.err.slice(-200))}`, () => this.terminals > 0, ms);
    return this;
  }
}

/** One accepted Attach stream, seen from the relay. */
export class Peer {
  hello: Hello | undefined;
  heartbeats = 0;
  over = false;
  readonly answers = new Map<bigint, Answer>();
  /** Every frame as it came, for checks of what is on the wire. */
  readonly frames: WorkerFrame[] = [];
  constructor(readonly wire: Wire, readonly token: string) {}

  send(msg: NonNullable<ServerFrame["msg"]>): void {
    this.wire.write({ msg });
  }

  exec(exec: Partial<Exec> & { command: string }): Answer {
    const reqId = exec.reqId ?? BigInt(Math.floor(Math.random() * 2 ** 50));
    const answer = new Answer();
    this.answers.set(reqId, answer);
    this.send({ $case: "exec", value: { ...EXEC, ...exec, reqId } });
    return Object.assign(answer, { reqId });
  }

  abort(reqId: bigint, execId = ""): void {
    this.send({ $case: "abort", value: { reqId, execId } });
  }

  /** Ends the stream as a broken link does. */
  cut(): void {
    this.wire.emit("error", { code: status.UNAVAILABLE, details: "cut by the test", metadata: new Metadata() });
  }
}

const EXEC: Exec = { reqId: 0n, command: "", stdin: Buffer.alloc(0), timeoutS: 0, streaming: true, execId: "", journalId: "", delivery: 0, resumeStdout: 0n, resumeStderr: 0n, outputCap: 0n, window: 0n, graceS: 0, traceparent: "" };

export class ScriptedRelay {
  readonly peers: Peer[] = [];
  /** Called for each Hello instead of accepting it; return true when it dealt with it. */
  onHello: (peer: Peer) => boolean = () => false;
  private readonly server = new Server({ "grpc.max_receive_message_length": 32 << 20 });
  port = 0;

  constructor(private readonly protocol: 0 | 1, private readonly times = { heartbeatMs: 15_000, deadlineMs: 45_000 }) {
    this.server.addService(SandboxWorkerService, {
      attach: (wire: Wire) => {
        const peer = new Peer(wire, String(wire.metadata.get("authorization")[0] ?? ""));
        wire.on("data", (f: WorkerFrame) => this.received(peer, f));
        const over = () => (peer.over = true);
        wire.on("error", over).on("end", () => {
          over();
          wire.end();
        }).on("cancelled", over).on("close", over);
      },
    });
  }

  async listen(port = 0): Promise<this> {
    this.port = await new Promise<number>((resolve, reject) => this.server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (e, p) => (e ? reject(e) : resolve(p))));
    return this;
  }

  async attached(n = 1): Promise<Peer> {
    return until(`${n} attached workers`, () => this.peers.filter((p) => p.hello)[n - 1], 30_000);
  }

  stop(): void {
    this.server.forceShutdown();
  }

  private received(peer: Peer, frame: WorkerFrame): void {
    peer.frames.push(frame);
    const m = frame.msg;
    if (m?.$case === "hello") {
      peer.hello = m.value;
      this.peers.push(peer);
      if (!this.onHello(peer) && this.protocol === 1) peer.send({ $case: "welcome", value: { protocol: 1, ...this.times } });
    } else if (m?.$case === "heartbeat") peer.heartbeats++;
    else if (m) {
      const a = peer.answers.get(m.value.reqId);
      if (!a) return;
      if (m.$case === "chunk") {
        const stream = m.value.stream === Stream.STREAM_STDERR ? "stderr" : "stdout";
        a[stream].push(m.value.data);
        a.offsets.push({ stream, at: Number(m.value.offset), length: m.value.data.length });
      } else if (m.$case === "accepted") a.accepted.push(m.value);
      else {
        a.terminals++;
        if (m.$case === "end") a.end = m.value;
        else a.error = m.value;
      }
    }
  }
}

export interface Worker {
  process: Running;
  stateDir: string;
}

const started: { stop(): Promise<void> | void }[] = [];

export async function startRelay(protocol: 0 | 1 = 1, times?: { heartbeatMs: number; deadlineMs: number }): Promise<ScriptedRelay> {
  const relay = await new ScriptedRelay(protocol, times).listen();
  started.push(relay);
  return relay;
}

/** A worker process against that relay, with a state folder of its own unless one is given. */
export function startWorkerProcess(relay: { port: number }, env: Record<string, string> = {}): Worker {
  const stateDir = env.WORKER_STATE_DIR ?? tempDir("worker-state-");
  const process = startProgram("remote-worker", { RELAY_ADDR: `127.0.0.1:${relay.port}`, SANDBOX_ID: "sbx-test", SANDBOX_TOKEN: "test-token", WORKER_STATE_DIR: stateDir, ...env });
  started.push({ stop: () => process.stop() });
  return { process, stateDir };
}

export function tempDir(prefix: string): string {
  const dir = mkdtempSync(path.join(tmpdir(), prefix));
  started.unshift({ stop: () => rmSync(dir, { recursive: true, force: true }) });
  return dir;
}

/** Ends everything that the helpers above began, the newest first. */
export async function stopAll(): Promise<void> {
  for (const s of started.splice(0).reverse()) await s.stop();
}
