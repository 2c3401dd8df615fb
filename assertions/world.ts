import { Cluster, loadKubeConfig } from "./cluster";
import { Container } from "./container";
import { Harness } from "./http";
import type { ProofInput } from "./input";
import { Model } from "./model";
import type { World } from "./ports";
import { Store } from "./store";

/** A node that has just started takes half a minute, and a worker dials again at most 45 s after that. */
const PATIENCE_MS = 90_000;
const LOG_LAG_MS = 5_000;

export const realCluster = (input: ProofInput): Cluster => new Cluster(loadKubeConfig(input.kubeconfig, input.context), input.namespace);

/** The real world of an input. Throws SettingError on an unusable kubeconfig; connects to nothing yet. Close its store. */
export function realWorld(input: ProofInput): World {
  const { namespace, redis } = input;
  const cluster = realCluster(input);
  return {
    patienceMs: PATIENCE_MS,
    logLagMs: LOG_LAG_MS,
    cluster,
    harness: new Harness(cluster, input),
    store: new Store(() => cluster.connect({ namespace, service: redis.service, port: redis.port }), redis.password),
    model: new Model(cluster, input),
    worker: new Container(input.worker.container),
  };
}
