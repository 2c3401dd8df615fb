import { status } from "@grpc/grpc-js";

/** Why a call is refused or a session ended. `reason` is a metric label: one of a few fixed words. */
export class Refusal extends Error {
  override readonly name = "Refusal";

  constructor(readonly code: status, readonly details: string, readonly reason: string) {
    super(details);
  }
}

export const refuse = {
  workerToken: (id: string) =>
    new Refusal(status.UNAUTHENTICATED, `missing or wrong worker token for sandbox '${id}'. Check SANDBOX_TOKEN of the worker against SH_RELAY_TOKEN of the relay`, "worker_token"),
  execToken: () =>
    new Refusal(status.UNAUTHENTICATED, "missing or wrong exec token. Send 'authorization: Bearer <SH_RELAY_EXEC_TOKEN>'", "exec_token"),
  invalid: (details: string) => new Refusal(status.INVALID_ARGUMENT, details, "invalid"),
  helloLate: (ms: number) => new Refusal(status.DEADLINE_EXCEEDED, `no Hello within ${ms} ms`, "hello_deadline"),
  superseded: (id: string) => new Refusal(status.ABORTED, `superseded: a newer session of sandbox '${id}' was accepted`, "superseded"),
  liveness: (ms: number) => new Refusal(status.DEADLINE_EXCEEDED, `liveness: no frame within ${ms} ms`, "liveness"),
  shuttingDown: () => new Refusal(status.UNAVAILABLE, "relay is shutting down", "shutting_down"),
  tooMany: (what: string, max: number, setting: string) =>
    new Refusal(status.RESOURCE_EXHAUSTED, `too many ${what}: the limit is ${max} (${setting})`, `too_many_${what}`),
  notAttached: (id: string) => new Refusal(status.NOT_FOUND, `no live worker for sandbox '${id}'`, "not_attached"),
  inFlight: (reqId: number, id: string) => new Refusal(status.ALREADY_EXISTS, `req_id ${reqId} already in flight for sandbox '${id}'`, "in_flight"),
  takenOver: () => new Refusal(status.ABORTED, "taken over: a newer delivery of this exec was accepted", "taken_over"),
  outran: (bytes: number) =>
    new Refusal(status.RESOURCE_EXHAUSTED, `the output outran its reader: more than ${bytes} bytes are waiting, and the worker has no flow control`, "buffer_full"),
  workerBusy: (id: string) => new Refusal(status.RESOURCE_EXHAUSTED, `sandbox '${id}' is not reading what the relay sends it`, "worker_not_reading"),
  internal: () => new Refusal(status.INTERNAL, "the relay failed on this call, see its log", "internal"),
  tooLarge: (bytes: number, max: number) =>
    new Refusal(status.RESOURCE_EXHAUSTED, `the command with its stdin is ${bytes} bytes, a base worker takes at most ${max} (SH_RELAY_BASE_MAX_MESSAGE_BYTES)`, "too_large"),
};
