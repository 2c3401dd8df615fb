// For tests only: a relay that does what the test says, over real gRPC, so that every reaction of the transport can be seen.
import { SandboxExecService, Stream, type AbortRequest, type DescribeRequest, type DescribeResponse, type Exec, type ExecEvent, type ExecRequest } from "@dialout/proto";
import { Metadata, Server, ServerCredentials, status, type sendUnaryData, type ServerUnaryCall, type ServerWritableStream } from "@grpc/grpc-js";

export type ExecCall = ServerWritableStream<ExecRequest, ExecEvent>;

export interface Script {
  exec?: (exec: Exec, call: ExecCall, nth: number) => void;
  abort?: (request: AbortRequest) => void;
  /** Undefined = a base relay, which does not know the method. */
  describe?: (nth: number) => Partial<DescribeResponse> | GrpcFailure;
}

export class GrpcFailure {
  constructor(readonly code: status, readonly details: string) {}
}

export class ScriptedRelay {
  readonly execs: Exec[] = [];
  readonly aborts: AbortRequest[] = [];
  readonly tokens: (string | undefined)[] = [];
  private describes = 0;
  private server = new Server();
  port = 0;

  constructor(private readonly script: Script) {}

  get addr(): string {
    return `127.0.0.1:${this.port}`;
  }

  async start(port = this.port): Promise<this> {
    this.server = new Server();
    const { describe } = this.script;
    this.server.addService(
      { ...SandboxExecService, exec: { ...SandboxExecService.exec, responseSerialize: (v: ExecEvent | Buffer) => (Buffer.isBuffer(v) ? v : SandboxExecService.exec.responseSerialize(v)) } },
      {
        exec: (call: ExecCall) => {
          this.tokens.push(call.metadata.get("authorization")[0]?.toString());
          call.on("error", () => undefined);
          const exec = call.request.exec as Exec;
          this.execs.push(exec);
          this.script.exec?.(exec, call, this.execs.length);
        },
        abort: (call: ServerUnaryCall<AbortRequest, object>, done: sendUnaryData<object>) => {
          this.aborts.push(call.request);
          this.script.abort?.(call.request);
          done(null, {});
        },
        // A base relay lacks the method: grpc answers UNIMPLEMENTED by itself.
        ...(describe && {
          describe: (_call: ServerUnaryCall<DescribeRequest, DescribeResponse>, done: sendUnaryData<DescribeResponse>) => {
            const answer = describe(++this.describes);
            if (answer instanceof GrpcFailure) return done({ code: answer.code, details: answer.details, metadata: new Metadata() });
            done(null, { protocol: 1, instanceId: "i", journalId: "journal-1", capacityMax: 4, capabilities: [], labels: {}, ...answer });
          },
        }),
      } as never,
    );
    this.port = await new Promise<number>((resolve, reject) => {
      this.server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (e, p) => (e ? reject(e) : resolve(p)));
    });
    return this;
  }

  /** Drops every connection at once. */
  kill(): void {
    this.server.forceShutdown();
  }
}

export const fail = (call: ExecCall, code: status, details: string) => call.emit("error", { code, details });

export const accepted = (exec: Exec): ExecEvent => ({ event: { $case: "accepted", value: { reqId: exec.reqId, state: "running" } } });

export const chunk = (exec: Exec, data: string | Buffer, offset: number, stream = Stream.STREAM_STDOUT): ExecEvent => ({
  event: { $case: "chunk", value: { reqId: exec.reqId, data: Buffer.from(data), stream, offset: BigInt(offset) } },
});

export const end = (exec: Exec, exitCode: number, more: object = {}): ExecEvent => ({
  event: {
    $case: "end",
    value: {
      reqId: exec.reqId, exitCode, stdoutTruncated: false, stderrTruncated: false, stdoutBytes: 0n, stderrBytes: 0n,
      signal: "", kill: undefined, replayed: false, durationMs: 0n, ...more,
    },
  },
});

export const error = (exec: Exec, message: string, code = "", more: object = {}): ExecEvent => ({
  event: { $case: "error", value: { reqId: exec.reqId, message, code, kill: undefined, replayed: false, ...more } },
});

/** Sends the events and closes the stream with OK. */
export const reply = (call: ExecCall, ...events: ExecEvent[]): void => {
  for (const event of events) call.write(event);
  call.end();
};
