import { SANDBOX_ID } from "@dialout/common";
import { z } from "zod";

export interface PresenceRecord {
  sandboxId: string;
  labels: Record<string, string>;
  capacityMax: number;
  relayAddr?: string;
}

export type Candidate = { kind: "pod"; name: string } | { kind: "remote"; name: string; record: PresenceRecord };

const recordSchema = z.object({
  sandboxId: z.string().regex(SANDBOX_ID),
  labels: z.record(z.string(), z.string()).default({}),
  capacityMax: z.number().int().positive(),
  transport: z.literal("grpc"),
  lastSeenMs: z.number().int().nonnegative().optional(),
  relayAddr: z.string().regex(/^[A-Za-z0-9[\]:._-]+:\d{1,5}$/).optional(),
});

export type RecordReading = { ok: true; record: PresenceRecord } | { ok: false; problem: string };

/** Reads one field of the presence hash. A record without `lastSeenMs` comes from a base relay and counts as fresh. */
export function readRecord(field: string, json: string, nowMs: number, staleMs: number): RecordReading {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return { ok: false, problem: "not JSON" };
  }
  const parsed = recordSchema.safeParse(value);
  if (!parsed.success) return { ok: false, problem: parsed.error.issues.map((i) => `${i.path.join(".") || "record"}: ${i.message}`).join("; ") };
  const { sandboxId, labels, capacityMax, lastSeenMs, relayAddr } = parsed.data;
  if (sandboxId !== field) return { ok: false, problem: `names another sandbox than its field (${sandboxId})` };
  if (lastSeenMs !== undefined && nowMs - lastSeenMs > staleMs) return { ok: false, problem: `last seen ${Math.round((nowMs - lastSeenMs) / 1000)} s ago` };
  return { ok: true, record: { sandboxId, labels, capacityMax, relayAddr } };
}

export const hasLabels = (record: PresenceRecord, wanted: Record<string, string>) => Object.entries(wanted).every(([k, v]) => record.labels[k] === v);

/** Leases a candidate takes: the configured cap, and never more than a worker says it can run. */
export const capOf = (c: Candidate, cap: number) => (c.kind === "remote" ? Math.min(cap, c.record.capacityMax) : cap);

/** Least loaded first; among equals the given order stays, and with it pods before workers. */
export function byLoad(candidates: readonly Candidate[], loads: readonly number[]): Candidate[] {
  return candidates
    .map((candidate, i) => ({ candidate, load: loads[i] ?? 0 }))
    .sort((a, b) => a.load - b.load)
    .map(({ candidate }) => candidate);
}

/** The relay to dial for a record: its own address when that is the configured one or on the list, else the configured one. */
export function relayFor(record: PresenceRecord, configured: string, allow: readonly string[]): { addr: string; refused?: string } {
  const own = record.relayAddr;
  if (own === undefined || own === configured) return { addr: configured };
  const ok = allow.some((a) => (a.startsWith("*.") ? own.endsWith(a.slice(1)) && own.length > a.length - 1 : own === a));
  return ok ? { addr: own } : { addr: configured, refused: own };
}
