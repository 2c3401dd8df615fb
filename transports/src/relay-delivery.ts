import { status, type ClientReadableStream, type ServiceError } from "@grpc/grpc-js";
import type { Chunk, End, ExecError, ExecEvent } from "@dialout/proto";

/** How one delivery ended. `halted` = we stopped listening. */
export type Ending =
  | { kind: "end"; end: End }
  | { kind: "error"; error: ExecError }
  | { kind: "status"; code: number; details: string }
  | { kind: "halted" };

export interface Sink {
  accepted(): void;
  /** A returned promise holds the relay back until it settles; it must not reject. */
  chunk(chunk: Chunk): void | Promise<void>;
}

/** After its terminal event a relay has this long to close the stream. */
const LINGER_MS = 1_000;

/** Listens to one Exec call to its end. Never rejects; whatever the call does afterwards is ignored. */
export function listen(call: ClientReadableStream<ExecEvent>, sink: Sink, halt: AbortSignal): Promise<Ending> {
  return new Promise((resolve) => {
    let settled = false;
    let linger: NodeJS.Timeout | undefined;
    const settle = (ending: Ending) => {
      if (settled) return;
      settled = true;
      halt.removeEventListener("abort", onHalt);
      // Paused or not, the rest must flow off, or the call is never freed.
      call.resume();
      if (ending.kind === "end" || ending.kind === "error") linger = setTimeout(() => call.cancel(), LINGER_MS);
      resolve(ending);
    };
    const onHalt = () => {
      settle({ kind: "halted" });
      call.cancel();
    };
    call.on("data", (event: ExecEvent) => {
      if (settled || !event.event) return;
      const { $case, value } = event.event;
      if ($case === "end") return settle({ kind: "end", end: value });
      if ($case === "error") return settle({ kind: "error", error: value });
      if ($case === "accepted") return sink.accepted();
      const held = sink.chunk(value);
      if (!held) return;
      call.pause();
      void held.then(() => call.resume());
    });
    call.on("error", (e: ServiceError) => settle({ kind: "status", code: e.code ?? status.UNKNOWN, details: e.details ?? e.message }));
    call.on("end", () => settle({ kind: "status", code: status.OK, details: "" }));
    call.on("status", () => clearTimeout(linger));
    halt.addEventListener("abort", onHalt, { once: true });
    if (halt.aborted) onHalt();
  });
}
