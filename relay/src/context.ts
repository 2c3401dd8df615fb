import type { Logger } from "@dialout/common";
import type { Metrics } from "./metrics";
import type { Presence } from "./presence";
import type { SessionRegistry } from "./registry";
import type { RelaySettings } from "./settings";
import type { QueueMeter } from "./sink";

/** What the handlers share. */
export interface RelayContext {
  readonly settings: RelaySettings;
  readonly registry: SessionRegistry;
  readonly presence: Presence;
  readonly metrics: Metrics;
  readonly meter: QueueMeter;
  readonly log: Logger;
  /** True from the first signal on: nothing new is taken. */
  draining: boolean;
  /** Exec calls that are open, those included that still hand out output of a finished command. */
  openCalls: number;
  /** Monotonic clock, milliseconds. */
  now(): number;
}
