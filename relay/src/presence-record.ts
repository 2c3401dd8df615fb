import type { Hello } from "@dialout/proto";
import { z } from "zod";

export const PRESENCE_KEY = "sh:sandbox:records";

type Announced = Pick<Hello, "sandboxId" | "labels" | "capabilities" | "capacityMax">;

/** Compact JSON; the order of its keys is part of the contract. `lastSeenMs`: milliseconds since the epoch. */
export function presenceJson(hello: Announced, lastSeenMs: number, relayAddr: string | undefined): string {
  return JSON.stringify({
    sandboxId: hello.sandboxId,
    labels: hello.labels,
    capabilities: hello.capabilities,
    capacityMax: hello.capacityMax,
    transport: "grpc",
    lastSeenMs,
    ...(relayAddr ? { relayAddr } : {}),
  });
}

const reapable = z.object({ transport: z.literal("grpc"), lastSeenMs: z.number(), relayAddr: z.string().optional() });

/**
 * Whether a record was left behind by an earlier life of this relay. Records without `lastSeenMs` are a base relay's, and
 * whatever does not parse is not ours to delete.
 */
export function isOwnGhost(json: string, relayAddr: string | undefined): boolean {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return false;
  }
  const record = reapable.safeParse(value);
  return record.success && record.data.relayAddr === relayAddr;
}
