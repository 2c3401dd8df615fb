import { credentials, Metadata, status, type CallOptions, type ClientReadableStream, type ServiceError } from "@grpc/grpc-js";
import { SandboxExecClient, type Exec, type ExecEvent } from "@dialout/proto";

export interface RelayTls {
  /** PEM of the authority that signed the relay's certificate; the system's roots when left out. */
  ca?: Buffer | string;
  /** Name to verify when it differs from the host in `addr`. */
  serverName?: string;
}

export interface LinkOptions {
  addr: string;
  sandboxId: string;
  execToken?: string;
  /** Plaintext when left out. */
  tls?: RelayTls;
  /** A silent connection is pinged this often, and given up after half of it without an answer. */
  keepaliveMs: number;
}

/** What the other end understands. A base peer gets no additions and no redelivery. */
export type Peer = { extended: false } | { extended: true; journalId: string };

/** Frames hold one 32 KiB chunk; a base worker may send up to 16 MiB in one. */
const MAX_MESSAGE = 16 * 1024 * 1024 + 64 * 1024;
const DESCRIBE_MS = 10_000;

/** One channel to one relay, for one sandbox: adds the credential, remembers what the peer can do. */
export class RelayLink {
  private readonly client: SandboxExecClient;
  private known: Peer | undefined;
  /** The relay has answered for this sandbox at least once. */
  everGood = false;

  constructor(private readonly options: LinkOptions) {
    const { addr, tls, keepaliveMs } = options;
    const ca = tls?.ca === undefined ? undefined : Buffer.from(tls.ca);
    this.client = new SandboxExecClient(addr, tls ? credentials.createSsl(ca) : credentials.createInsecure(), {
      "grpc.keepalive_time_ms": keepaliveMs,
      "grpc.keepalive_timeout_ms": Math.ceil(keepaliveMs / 2),
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 2_000,
      "grpc.max_receive_message_length": MAX_MESSAGE,
      "grpc.enable_channelz": 0,
      // The library's 64 KiB would hold a caller at 50 ms distance to about 1 MiB/s, and cost a turn of both processes for every 64 KiB.
      "grpc-node.flow_control_window": 256 * 1024,
      // A pooled connection would outlive close().
      "grpc.use_local_subchannel_pool": 1,
      ...(tls?.serverName ? { "grpc.ssl_target_name_override": tls.serverName, "grpc.default_authority": tls.serverName } : {}),
    });
  }

  /** Asks once and remembers; rejects with the relay's ServiceError. */
  async peer(signal: AbortSignal): Promise<Peer> {
    return (this.known ??= await this.describe(signal));
  }

  forgetPeer(): void {
    this.known = undefined;
  }

  exec(exec: Exec, options: CallOptions): ClientReadableStream<ExecEvent> {
    return this.client.exec({ sandboxId: this.options.sandboxId, exec }, this.metadata(), options);
  }

  /** True when the relay took it within `ms`, waiting for a connection if need be. Never rejects. */
  abort(reqId: bigint, execId: string, ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const request = { sandboxId: this.options.sandboxId, reqId, execId };
      this.client.abort(request, this.metadata(), { deadline: Date.now() + ms, waitForReady: true } as CallOptions, (e) => resolve(!e));
    });
  }

  close(): void {
    this.client.close();
  }

  private describe(signal: AbortSignal): Promise<Peer> {
    return new Promise((resolve, reject) => {
      const call = this.client.describe({ sandboxId: this.options.sandboxId }, this.metadata(), { deadline: Date.now() + DESCRIBE_MS }, (e, d) => {
        signal.removeEventListener("abort", cancel);
        if (e && e.code !== status.UNIMPLEMENTED) return reject(e);
        this.everGood = true;
        // A base worker behind our relay has no journal: nothing there could tell a redelivery from a new command.
        resolve(!e && d.protocol >= 1 && d.journalId ? { extended: true, journalId: d.journalId } : { extended: false });
      });
      const cancel = () => call.cancel();
      signal.addEventListener("abort", cancel, { once: true });
      if (signal.aborted) cancel();
    });
  }

  private metadata(): Metadata {
    const metadata = new Metadata();
    if (this.options.execToken) metadata.set("authorization", `Bearer ${this.options.execToken}`);
    return metadata;
  }
}

export type { ServiceError };
