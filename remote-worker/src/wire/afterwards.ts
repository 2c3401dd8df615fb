import type { SessionEnd } from "./session";

export interface Verdict {
  action: "retry" | "exit";
  /** The link was good: the next wait starts small again. */
  resetBackoff: boolean;
  level: "info" | "warn" | "error";
  message: string;
}

/** A link that stayed up this long was good, whoever the relay is. */
const GOOD_MS = 30_000;
/** A relay that says Welcome has accepted the token, so a shorter time will do. */
const GOOD_WELCOMED_MS = 5_000;

/** What follows from the way a session ended. */
export function afterwards(end: SessionEnd, sandboxId: string, relayAddr: string): Verdict {
  const up = end.attachedMs ?? 0;
  const resetBackoff = up > GOOD_MS || (end.welcomed && up > GOOD_WELCOMED_MS);
  const retry = (level: Verdict["level"], message: string): Verdict => ({ action: "retry", resetBackoff, level, message });
  switch (end.why) {
    case "unauthenticated":
      return retry("error", `the relay refuses the token of sandbox '${sandboxId}' (${end.details}). Compare SANDBOX_TOKEN or SANDBOX_TOKEN_FILE here with SH_RELAY_TOKEN of the relay`);
    case "superseded":
      return { action: "exit", resetBackoff: false, level: "error", message: `another worker has attached as '${sandboxId}' and replaces this one (${end.details}). Give each worker its own SANDBOX_ID` };
    case "invalid":
      return retry("error", `the relay refuses this worker's introduction: ${end.details}`);
    case "refused":
      return retry("error", `the relay closed the stream right after the introduction: the token of '${sandboxId}' is wrong, or a worker of that id is attached. Check SANDBOX_TOKEN and SANDBOX_ID`);
    case "connect":
      return retry("warn", `${end.details}. Check RELAY_ADDR=${relayAddr}, RELAY_TLS and the tunnel to the relay`);
    case "liveness":
      return retry("warn", `the relay has gone silent: ${end.details}`);
    case "eof":
      return retry("warn", "the relay closed the stream");
    case "error":
      return retry("warn", `the stream to the relay broke: ${end.details} (gRPC status ${end.code})`);
    case "closed":
      return retry("info", end.details);
  }
}
