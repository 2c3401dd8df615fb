import { credentials, Metadata, status, type ClientDuplexStream } from "@grpc/grpc-js";
import { SandboxWorkerClient, SandboxWorkerService, type Hello, type ServerFrame, type Welcome, type WorkerFrame } from "@dialout/proto";
import { readCa, type WorkerSettings } from "../settings";
import { encodeFrame } from "./encode";

const ATTACH = SandboxWorkerService.attach;
/** base64 of an 8 MiB file and some, as upstream; a relay's larger frame would end the stream with all its commands. */
const RECEIVE_MAX = 20 << 20;
const CONNECT_MS = 10_000;
/** A base relay says nothing on success; this long an open stream counts as accepted. */
const SILENT_WELCOME_MS = 700;
const CLOSE_MS = 500;
const BASE_HEARTBEAT_MS = 15_000;

export type SessionEnd = {
  why: "connect" | "unauthenticated" | "superseded" | "invalid" | "refused" | "eof" | "liveness" | "error" | "closed";
  /** gRPC status code and text, as far as there was one. */
  code: number;
  details: string;
  /** ms between acceptance and end; undefined when the relay never accepted us. */
  attachedMs: number | undefined;
  welcomed: boolean;
};

export interface SessionHandlers {
  /** The relay has accepted us; `protocol` 0 = a base relay. May be called again with 1 when Welcome comes late. */
  attached(protocol: number): void;
  frame(frame: ServerFrame): void;
  writable(): void;
}

type State =
  | { at: "connecting" }
  | { at: "greeting" }
  | { at: "attached"; sinceMs: number; protocol: number }
  | { at: "over"; end: SessionEnd };

/** One Attach stream on a connection of its own, from dialling to its end. Whatever arrives after the end is ignored. */
export class Session {
  readonly ended: Promise<SessionEnd>;
  private state: State = { at: "connecting" };
  private resolve: (end: SessionEnd) => void = () => undefined;
  private readonly client: SandboxWorkerClient;
  private stream: ClientDuplexStream<WorkerFrame, ServerFrame> | undefined;
  private timers: NodeJS.Timeout[] = [];
  private liveness: NodeJS.Timeout | undefined;
  private lastFrameMs = 0;
  private welcome: Welcome | undefined;

  constructor(
    settings: Pick<WorkerSettings, "relayAddr" | "tls">,
    token: string,
    private readonly hello: Hello,
    private readonly handlers: SessionHandlers,
  ) {
    this.ended = new Promise((r) => (this.resolve = r));
    const tls = settings.tls;
    this.client = new SandboxWorkerClient(settings.relayAddr, tls ? credentials.createSsl(tls.caFile ? readCa(tls.caFile) : null) : credentials.createInsecure(), {
      "grpc.max_receive_message_length": RECEIVE_MAX,
      "grpc.max_send_message_length": -1,
      "grpc.keepalive_time_ms": 30_000,
      "grpc.keepalive_timeout_ms": 10_000,
      "grpc.use_local_subchannel_pool": 1,
      "grpc.service_config_disable_resolution": 1,
      "grpc.enable_retries": 0,
      ...(tls?.serverName ? { "grpc.ssl_target_name_override": tls.serverName, "grpc.default_authority": tls.serverName } : {}),
    });
    this.client.waitForReady(Date.now() + CONNECT_MS, (e) => {
      if (this.state.at !== "connecting") return;
      if (e) this.finish("connect", status.UNAVAILABLE, `no connection to ${settings.relayAddr} within ${CONNECT_MS / 1000} s`);
      else this.greet(token);
    });
  }

  get extended(): boolean {
    return this.welcome !== undefined && this.welcome.protocol >= 1;
  }

  /** False = hold back until `writable`. Never throws, also not after the end. */
  send(frame: WorkerFrame): boolean {
    if (this.state.at === "over" || !this.stream || this.stream.writableEnded) return true;
    return this.stream.write(frame);
  }

  /** Ends the stream in order, so that what was written still arrives, and after a moment in any case. */
  async close(details: string): Promise<void> {
    this.stream?.end();
    const timer = setTimeout(() => this.finish("closed", status.CANCELLED, details), this.stream ? CLOSE_MS : 0);
    await this.ended;
    clearTimeout(timer);
  }

  private greet(token: string): void {
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${token}`);
    this.state = { at: "greeting" };
    this.lastFrameMs = performance.now();
    const stream = (this.stream = this.client.makeBidiStreamRequest(ATTACH.path, encodeFrame, ATTACH.responseDeserialize, metadata));
    stream.on("data", (f: ServerFrame) => this.received(f));
    stream.on("drain", () => this.state.at !== "over" && this.handlers.writable());
    stream.on("error", () => undefined); // the status event says the same
    stream.on("status", (s: { code: number; details: string }) => this.finish(this.reason(s.code, s.details), s.code, s.details));
    stream.write({ msg: { $case: "hello", value: this.hello } });
    this.timers.push(setTimeout(() => this.accepted(0), SILENT_WELCOME_MS));
    this.heartbeat(BASE_HEARTBEAT_MS);
  }

  private received(frame: ServerFrame): void {
    if (this.state.at === "over") return;
    this.lastFrameMs = performance.now();
    if (frame.msg?.$case === "welcome") {
      if (this.welcome) return;
      this.welcome = frame.msg.value;
      if (this.welcome.heartbeatMs > 0) this.heartbeat(this.welcome.heartbeatMs);
      if (this.welcome.deadlineMs > 0) this.watch(this.welcome.deadlineMs);
      return this.accepted(this.welcome.protocol);
    }
    if (this.state.at === "greeting") this.accepted(0);
    this.handlers.frame(frame);
  }

  private accepted(protocol: number): void {
    if (this.state.at === "greeting") this.state = { at: "attached", sinceMs: performance.now(), protocol };
    else if (this.state.at === "attached" && protocol > this.state.protocol) this.state = { ...this.state, protocol };
    else return;
    this.handlers.attached(protocol);
  }

  private heartbeat(ms: number): void {
    for (const t of this.timers.splice(0)) clearTimeout(t);
    this.timers.push(setInterval(() => this.send({ msg: { $case: "heartbeat", value: {} } }), ms));
    if (this.state.at === "greeting" && !this.welcome) this.timers.push(setTimeout(() => this.accepted(0), SILENT_WELCOME_MS));
  }

  /** Gives the link up after `deadlineMs` without a frame. A late timer means that this process stood still: frames may be waiting to be read. */
  private watch(deadlineMs: number): void {
    const step = Math.max(50, deadlineMs / 5);
    let due = performance.now() + step;
    this.liveness = setInterval(() => {
      const now = performance.now();
      const stoodStill = now - due > step;
      due = now + step;
      if (!stoodStill && now - this.lastFrameMs > deadlineMs) this.finish("liveness", status.DEADLINE_EXCEEDED, `no frame from the relay for ${deadlineMs} ms`);
    }, step);
  }

  private reason(code: number, details: string): SessionEnd["why"] {
    if (code === status.UNAUTHENTICATED || code === status.PERMISSION_DENIED) return "unauthenticated";
    if (code === status.ABORTED && details.startsWith("superseded")) return "superseded";
    if (code === status.INVALID_ARGUMENT) return "invalid";
    if (code === status.OK) return this.state.at === "attached" ? "eof" : "refused";
    return "error";
  }

  private finish(why: SessionEnd["why"], code: number, details: string): void {
    if (this.state.at === "over") return;
    const attachedMs = this.state.at === "attached" ? performance.now() - this.state.sinceMs : undefined;
    const end: SessionEnd = { why, code, details, attachedMs, welcomed: this.welcome !== undefined };
    this.state = { at: "over", end };
    for (const t of this.timers.splice(0)) clearTimeout(t);
    clearInterval(this.liveness);
    this.stream?.cancel();
    this.client.close();
    this.resolve(end);
  }
}
