import { setTimeout as sleep } from "node:timers/promises";

/** Waits; an abort ends it at once with the signal's own reason. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(milliseconds, undefined, { signal });
  } catch (error) {
    throw signal.reason instanceof Error ? signal.reason : error;
  }
}
