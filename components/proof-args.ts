import * as pulumi from "@pulumi/pulumi";
import { type Cluster } from "./cluster";
import { type Harness } from "./harness";
import { type HostWorker } from "./host-worker";
import { type Images } from "./images";
import { remoteSelector } from "./manifests/common";
import { type Plan } from "./plan";
import { type Redis } from "./redis";
import { type Relay } from "./relay";
import { type SandboxPool } from "./sandbox-pool";

export interface Stage {
  plan: Plan;
  cluster: Cluster;
  images: Images;
  redis: Redis;
  relay: Relay;
  pool: SandboxPool;
  harness: Harness;
  worker: HostWorker;
}

/**
 * What the proof has to know about what is there (assertions/index.ts has the type). It runs again when one of these changes; the
 * transport of `serverless-harness` is not among them, since the proof has arms of its own.
 */
export function proofArgs({ plan, cluster, images, redis, relay, pool, harness, worker }: Stage) {
  const { settings, model, ingress, place } = plan;
  return {
    kubeconfig: cluster.kubeconfig,
    context: cluster.context,
    namespace: place.namespace,
    arms: harness.arms,
    domain: "example.com",
    ingress: { namespace: ingress.namespace, service: ingress.service, port: 80 },
    redis: { service: redis.service, port: redis.port },
    poolSelector: pool.selector,
    remoteSelector,
    worker: { container: settings.workerContainer, id: settings.workerId },
    relay: { service: relay.service, execPort: relay.execPort, secret: relay.secret },
    patterns: { pods: settings.podsPattern, remote: settings.remotePattern },
    model: { label: model.label, scripted: model.kind === "scripted" },
    run: new pulumi.Config("proof").getNumber("run") ?? 0,
    triggers: { images: Object.values(images.refs), worker: worker.containerId, cluster: cluster.identity, model: [model.name, model.url] },
  };
}
