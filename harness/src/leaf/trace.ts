import { randomBytes } from "node:crypto";

export interface Trace {
  traceId: string;
  /** W3C header value for what this leaf calls. */
  traceparent: string;
}

/** Continues the caller's trace when its header is well formed, else starts one. The span is new either way. */
export function traceOf(header: string | undefined): Trace {
  const m = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(header ?? "");
  const known = m && !/^0+$/.test(m[1]!) && !/^0+$/.test(m[2]!);
  const traceId = known ? m[1]! : randomBytes(16).toString("hex");
  return { traceId, traceparent: `00-${traceId}-${randomBytes(8).toString("hex")}-${known ? m[3]! : "01"}` };
}
