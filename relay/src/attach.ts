import { bearerToken, type Logger } from "@dialout/common";
import { Hello, type Hello as HelloMessage } from "@dialout/proto";
import { Metadata, type ServerDuplexStream } from "@grpc/grpc-js";
import type { RelayContext } from "./context";
import { encodeFrame } from "./exec-request";
import { checkHello, checkSandboxId } from "./hello";
import { resetStream, widenReceiveWindow } from "./http2";
import { WorkerSession, type WorkerLink } from "./session";
import { Refusal, refuse } from "./status";
import { workerMayAttach } from "./tokens";
import { WireError, scanFrame } from "./wire";

type AttachCall = ServerDuplexStream<Buffer, Buffer>;

const RECEIVE_WINDOW = 1024 * 1024;
/** How long a stream that was told its status may take to go. */
const CLOSE_MS = 5_000;

/** The worker's stream: counts what it has not taken, ends at most once, and goes even when the peer does not read. */
class AttachLink implements WorkerLink {
  queued = 0;
  private ended = false;

  constructor(private readonly call: AttachCall) {}

  send(frame: Buffer): void {
    if (this.ended) return;
    this.queued += frame.length;
    this.call.write(frame, () => {
      this.queued -= frame.length;
    });
  }

  end(refusal: Refusal | undefined): void {
    if (this.ended) return;
    this.ended = true;
    if (refusal) this.call.emit("error", { code: refusal.code, details: refusal.details });
    else this.call.end();
    const timer = setTimeout(() => resetStream(this.call), CLOSE_MS);
    timer.unref();
    this.call.once("close", () => clearTimeout(timer));
  }
}

/** Serves SandboxWorker.Attach: one stream per worker, from its Hello to its end. */
export class AttachService {
  private waiting = 0;

  constructor(private readonly relay: RelayContext) {}

  readonly attach = (call: AttachCall): void => {
    const { settings, log } = this.relay;
    const link = new AttachLink(call);
    const peer = call.getPeer();
    let session: WorkerSession | undefined;
    let said = false;

    const deny = (refusal: Refusal, sandboxId?: string) => {
      this.relay.metrics.refused.inc({ method: "Attach", reason: refusal.reason });
      log.warn({ sandbox_id: sandboxId, peer, reason: refusal.reason }, `attach refused: ${refusal.details}`);
      link.end(refusal);
    };

    this.waiting++;
    const heard = () => {
      if (!said) this.waiting--;
      said = true;
      clearTimeout(timer);
    };
    const timer = setTimeout(() => {
      heard();
      deny(refuse.helloLate(settings.helloDeadlineMs));
    }, settings.helloDeadlineMs);

    call.on("data", (bytes: Buffer) => {
      if (session) return session.frame(bytes, this.relay.now());
      // Frames before Hello are dropped, as are those behind a refusal.
      const hello = said ? undefined : helloOf(bytes, deny);
      if (!hello) return;
      heard();
      session = this.accept(call, link, hello, peer, deny);
    });
    const gone = (why: string) => {
      heard();
      // Ends our half also when the worker only closed its own.
      if (session) session.close(undefined);
      else link.end(undefined);
      if (session) this.ended(session, why);
    };
    call.on("end", () => gone("the worker ended its stream"));
    // Without a listener an error event would end the process; grpc-js turns ours into the status.
    call.on("error", () => gone("ended by the relay"));
    // Also after a cancel, a reset or a lost connection: the library destroys the call then.
    call.on("close", () => gone("the stream was cut"));

    if (this.relay.draining) {
      heard();
      deny(refuse.shuttingDown());
    } else if (this.waiting > settings.maxWorkers) {
      heard();
      deny(refuse.tooMany("workers", settings.maxWorkers, "SH_RELAY_MAX_WORKERS"));
    }
  };

  private accept(call: AttachCall, link: AttachLink, hello: HelloMessage, peer: string, deny: (r: Refusal, id?: string) => void): WorkerSession | undefined {
    const { settings, registry, metrics, log } = this.relay;
    try {
      if (this.relay.draining) throw refuse.shuttingDown();
      checkSandboxId(hello.sandboxId);
      if (!workerMayAttach(settings.worker, settings.exec, hello.sandboxId, bearerToken(call.metadata.get("authorization")[0]))) throw refuse.workerToken(hello.sandboxId);
      checkHello(hello);
      registry.admit(hello.sandboxId);
    } catch (e) {
      if (!(e instanceof Refusal)) throw e;
      deny(e, hello.sandboxId);
      return undefined;
    }
    const session = new WorkerSession(hello, link, settings, this.relay.meter, metrics, log, this.relay.now());
    // Headers at once: a proxy in between may hold them back until the first message.
    call.sendMetadata(new Metadata());
    widenReceiveWindow(call, RECEIVE_WINDOW);
    if (!session.base) {
      link.send(encodeFrame({ msg: { $case: "welcome", value: { protocol: 1, heartbeatMs: settings.heartbeatMs, deadlineMs: settings.deadlineMs } } }));
    }
    registry.add(session);
    this.relay.presence.attached(hello);
    metrics.sessions.inc();
    log.info({ sandbox_id: session.id, instance_id: hello.instanceId, protocol: hello.protocol, capacity_max: hello.capacityMax, peer }, "worker attached");
    return session;
  }

  /** The session is over; whoever took its id over keeps the presence record. */
  ended(session: WorkerSession, why: string): void {
    if (!this.relay.registry.remove(session)) return;
    this.relay.presence.detached(session.id);
    this.relay.log.info({ sandbox_id: session.id, instance_id: session.hello.instanceId }, `worker detached: ${why}`);
  }
}

function helloOf(bytes: Buffer, deny: (r: Refusal) => void): HelloMessage | undefined {
  try {
    const frame = scanFrame(bytes);
    return frame.kind === "hello" ? decodeHello(frame.body) : undefined;
  } catch (e) {
    if (!(e instanceof WireError)) throw e;
    deny(refuse.invalid(`frame cannot be decoded: ${e.message}`));
    return undefined;
  }
}

function decodeHello(body: Buffer): HelloMessage {
  try {
    return Hello.decode(body);
  } catch (e) {
    throw new WireError((e as Error).message);
  }
}

/** Logs and counts what a sweep or a takeover ended. */
export function logEnded(log: Logger, session: WorkerSession, why: Refusal): void {
  log.warn({ sandbox_id: session.id, instance_id: session.hello.instanceId, reason: why.reason }, `session ended: ${why.details}`);
}
