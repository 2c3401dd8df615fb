// The generated services with messages left as bytes: forwarded payloads are not decoded, and what cannot be decoded is
// answered by us with a status that says so, not by the library.
import { SandboxExecService, SandboxWorkerService } from "@dialout/proto";
import type { handleBidiStreamingCall, handleServerStreamingCall, handleUnaryCall, MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";

const asIs = (bytes: Buffer): Buffer => bytes;

type Raw<S> = { [K in keyof S]: MethodDefinition<Buffer, Buffer> };

function raw<S extends ServiceDefinition>(service: S): Raw<S> {
  const methods = Object.entries(service).map(([name, method]) => [
    name,
    { ...method, requestSerialize: asIs, requestDeserialize: asIs, responseSerialize: asIs, responseDeserialize: asIs },
  ]);
  return Object.fromEntries(methods) as Raw<S>;
}

export const RawWorkerService = raw(SandboxWorkerService);
export const RawExecService = raw(SandboxExecService);

export interface RawExecHandlers {
  exec: handleServerStreamingCall<Buffer, Buffer>;
  abort: handleUnaryCall<Buffer, Buffer>;
  describe: handleUnaryCall<Buffer, Buffer>;
}
export interface RawWorkerHandlers {
  attach: handleBidiStreamingCall<Buffer, Buffer>;
}
