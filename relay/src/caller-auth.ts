import { bearerToken } from "@dialout/common";
import { ServerInterceptingCall, type Metadata, type ServerInterceptor } from "@grpc/grpc-js";
import { refuse } from "./status";
import { UNKNOWN_CALLER, identifyCaller, type ExecTokens } from "./tokens";

/** Callers by the metadata object of their call, which the library hands on to the handler. */
const callers = new WeakMap<Metadata, string>();

/**
 * Refuses calls without an exec token as soon as their headers are there: before a message is read, decoded or judged.
 * `refused` is told the method's path.
 */
export function callerAuth(exec: ExecTokens, refused: (path: string, peer: string, reason: string) => void): ServerInterceptor {
  return (method, call) =>
    new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, pass) => {
            const caller = identifyCaller(exec, bearerToken(metadata.get("authorization")[0]));
            if (caller === undefined) {
              const refusal = refuse.execToken();
              refused(method.path, call.getPeer(), refusal.reason);
              call.sendStatus({ code: refusal.code, details: refusal.details });
              return;
            }
            callers.set(metadata, caller);
            pass(metadata);
          },
        }),
    });
}

export function callerOf(metadata: Metadata): string {
  return callers.get(metadata) ?? UNKNOWN_CALLER;
}
