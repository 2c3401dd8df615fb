// A gRPC server with nothing behind it: the same library, the same messages, no relay and no worker. argv: none; prints its port.
import { SandboxExecService, Stream, type ExecRequest } from "@dialout/proto";
import { Server, ServerCredentials, type ServerWritableStream } from "@grpc/grpc-js";

const server = new Server({ "grpc.max_send_message_length": -1 });
server.addService(SandboxExecService, {
  // command = number of bytes to stream
  exec(call: ServerWritableStream<ExecRequest, unknown>) {
    let left = Number(call.request.exec?.command);
    const data = Buffer.alloc(32 * 1024, 120);
    const reqId = call.request.exec?.reqId ?? 0n;
    const pump = () => {
      while (left > 0) {
        const part = left >= data.length ? data : data.subarray(0, left);
        left -= part.length;
        if (!call.write({ event: { $case: "chunk", value: { reqId, data: part, stream: Stream.STREAM_STDOUT, offset: 0n } } })) return call.once("drain", pump);
      }
      return call.end();
    };
    pump();
  },
  abort: (_: unknown, done: (e: null, r: object) => void) => done(null, {}),
  describe: (_: unknown, done: (e: null, r: object) => void) => done(null, {}),
} as never);
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (e, port) => {
  if (e) throw e;
  console.log(`listening on :${port}`);
});
