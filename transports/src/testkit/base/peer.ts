// For tests only: a caller, a worker and a relay that know the base protocol alone. They share no code with ours: their messages
// come from their own file, and another protobuf library reads it.
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { until } from "@dialout/common/testkit";
import path from "node:path";

/** A decoded message of the base protocol; uint64 is a string. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the messages of a library that has no types for them
type Message = Record<string, any>;
type Client = grpc.Client & Record<string, (...args: unknown[]) => grpc.ClientDuplexStream<Message, Message> & grpc.ClientReadableStream<Message>>;

const loaded = grpc.loadPackageDefinition(loadSync(path.join(__dirname, "sandbox.proto"), { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true }));
const v1 = (loaded.sandbox as grpc.GrpcObject).v1 as Record<"SandboxWorker" | "SandboxExec", grpc.ServiceClientConstructor>;
const connect = (service: keyof typeof v1, addr: string) => new v1[service](addr, grpc.credentials.createInsecure()) as unknown as Client;

const bearer = (token?: string) => {
  const metadata = new grpc.Metadata();
  if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
  return metadata;
};

/** What a caller saw of one Exec. */
export interface Seen {
  stdout: string;
  stderr: string;
  /** Every event in order, by the name of its case; `undefined` for a case that the base protocol does not have. */
  events: (string | undefined)[];
  exitCode?: number;
  error?: string;
  status: grpc.status;
  details: string;
}

export class BaseCaller {
  private readonly client: Client;
  constructor(addr: string, private readonly token?: string) {
    this.client = connect("SandboxExec", addr);
  }

  exec(sandbox_id: string, exec: Message | undefined, onEvent?: (e: Message, call: grpc.ClientReadableStream<Message>) => void): Promise<Seen> {
    return new Promise((resolve) => {
      const seen: Seen = { stdout: "", stderr: "", events: [], status: grpc.status.UNKNOWN, details: "" };
      const call = this.client.Exec!({ sandbox_id, exec }, bearer(this.token), { deadline: Date.now() + 60_000 });
      call.on("data", (e: Message) => {
        seen.events.push(e.event);
        if (e.event === "chunk") seen[e.chunk.stream === "STREAM_STDERR" ? "stderr" : "stdout"] += e.chunk.data.toString();
        if (e.event === "end") seen.exitCode = e.end.exit_code;
        if (e.event === "error") seen.error = e.error.message;
        onEvent?.(e, call);
      });
      call.on("error", () => undefined); // `status` says the same
      call.on("status", (s: grpc.StatusObject) => resolve({ ...seen, status: s.code, details: s.details }));
    });
  }

  abort(sandbox_id: string, req_id: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.client.Abort!({ sandbox_id, req_id }, bearer(this.token), (e: Error | null) => (e ? reject(e) : resolve()));
    });
  }

  close(): void {
    this.client.close();
  }
}

/** A worker that answers by `serve`; every frame of the relay is kept as it was decoded. */
export class BaseWorker {
  readonly frames: Message[] = [];
  ended: grpc.StatusObject | undefined;
  private readonly client: Client;
  private readonly call;

  constructor(addr: string, token: string, hello: Message, serve: (frame: Message, send: (frame: Message) => void) => void) {
    this.client = connect("SandboxWorker", addr);
    this.call = this.client.Attach!(bearer(token));
    this.call.on("data", (f: Message) => {
      this.frames.push(f);
      serve(f, (frame) => this.call.write(frame));
    });
    this.call.on("error", () => undefined);
    this.call.on("status", (s: grpc.StatusObject) => (this.ended = s));
    this.call.write({ hello });
  }

  close(): void {
    this.call.end();
    this.client.close();
  }
}

/** A relay for one worker and any number of callers, as simple as the base protocol allows. */
export class BaseRelay {
  readonly fromWorker: Message[] = [];
  authorization: unknown;
  port = 0;
  private readonly server = new grpc.Server();
  private worker: grpc.ServerDuplexStream<Message, Message> | undefined;
  private readonly callers = new Map<string, grpc.ServerWritableStream<Message, Message>>();

  async start(): Promise<this> {
    this.server.addService(v1.SandboxWorker.service, {
      Attach: (call: grpc.ServerDuplexStream<Message, Message>) => {
        this.authorization = call.metadata.get("authorization")[0];
        call.on("data", (f: Message) => this.received(f, call));
        call.on("end", () => call.end());
        call.on("error", () => undefined);
      },
    });
    this.server.addService(v1.SandboxExec.service, {
      Exec: (call: grpc.ServerWritableStream<Message, Message>) => {
        this.callers.set(call.request.exec.req_id, call);
        this.worker?.write({ exec: call.request.exec });
        call.on("cancelled", () => this.worker?.write({ abort: { req_id: call.request.exec.req_id } }));
      },
      Abort: (call: grpc.ServerUnaryCall<Message, Message>, answer: grpc.sendUnaryData<Message>) => {
        this.worker?.write({ abort: { req_id: call.request.req_id } });
        answer(null, {});
      },
    });
    this.port = await new Promise<number>((resolve, reject) => this.server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (e, port) => (e ? reject(e) : resolve(port))));
    return this;
  }

  private received(frame: Message, call: grpc.ServerDuplexStream<Message, Message>): void {
    this.fromWorker.push(frame);
    if (frame.msg === "hello") this.worker = call;
    if (!["chunk", "end", "error"].includes(frame.msg)) return;
    const body = frame[frame.msg] as Message;
    const caller = this.callers.get(body.req_id);
    caller?.write({ [frame.msg]: body });
    if (frame.msg !== "chunk") {
      this.callers.delete(body.req_id);
      caller?.end();
    }
  }

  hello(): Promise<Message> {
    return until("the worker says hello", () => this.fromWorker.find((f) => f.msg === "hello")?.hello as Message | undefined);
  }

  stop(): void {
    this.server.forceShutdown();
  }
}
