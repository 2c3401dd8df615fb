import type { Logger } from "@dialout/common";
import { Metrics } from "./metrics";
import { connector } from "./sandbox/connect";
import { SandboxPool } from "./sandbox/pool";
import type { HarnessSettings } from "./settings";
import { Leases } from "./store/lease";
import { Store } from "./store/redis";
import { Results } from "./store/results";

/** What every request shares: one of each per process. */
export interface Services {
  settings: HarnessSettings;
  log: Logger;
  store: Store;
  leases: Leases;
  sandboxes: SandboxPool;
  results: Results;
  metrics: Metrics;
}

export function createServices(settings: HarnessSettings, log: Logger): Services {
  const store = new Store(settings.redisUrl, settings.redisTimeoutMs, log);
  const leases = new Leases(store, settings.sandbox.leaseTtlMs, settings.sandbox.heartbeatMs, log);
  return {
    settings,
    log,
    store,
    leases,
    sandboxes: new SandboxPool(settings.sandbox, store, leases, connector(settings.sandbox), log),
    results: new Results(store, settings.resultTtlS),
    metrics: new Metrics(),
  };
}
