// The plot: a cluster with an agent harness in it, a worker outside that only dials out, and the proof that the harness's tool calls
// can run there. Every component says in its own file why it is as it is.
import { Proof, Vignettes } from "./assertions";
import { AttachTls } from "./components/attach-tls";
import { Extras } from "./components/extras";
import { Harness } from "./components/harness";
import { HostWorker } from "./components/host-worker";
import { Images } from "./components/images";
import { Knative } from "./components/knative";
import { ModelEndpoint } from "./components/model-endpoint";
import { Namespace } from "./components/namespace";
import { NetworkPolicies } from "./components/network-policies";
import { nextSteps } from "./components/next-steps";
import { openCluster, prepare } from "./components/plan";
import { proofArgs } from "./components/proof-args";
import { Redis } from "./components/redis";
import { Relay } from "./components/relay";
import { SandboxPool } from "./components/sandbox-pool";
import { Secrets } from "./components/secrets";
import { openTunnel } from "./components/tunnel";

export = async () => {
  const plan = await prepare();
  const { settings, modelApiKey, place, model, ingress, knative: install, extras, preload } = plan;

  const cluster = openCluster(settings);
  const images = new Images("images", { cluster, settings, preload });
  const { ready: namespace } = new Namespace("namespace", { cluster, namespace: place.namespace });
  const knative = new Knative("knative", { cluster, install, ingress, namespace: place.namespace, after: images.loaded });
  new Extras("extras", { cluster, objects: extras, after: images.loaded });
  const policies = new NetworkPolicies("policies", { cluster, place, model, after: namespace });

  const secrets = new Secrets("secrets", { cluster, place, model, modelApiKey, after: namespace });
  const redis = new Redis("redis", { cluster, place, image: settings.redisImage, after: [...namespace, ...images.loaded] });
  const tls = settings.attachTls ? new AttachTls("attach-tls", { cluster, place, settings, after: namespace }) : undefined;
  const relay = new Relay("relay", { cluster, place, image: images.refs.relay, nodePort: settings.tunnel === "network", tlsSecret: tls?.secret, after: [...images.loaded, ...secrets.ready, ...redis.ready, ...(tls?.ready ?? [])] });
  const pool = new SandboxPool("pool", { cluster, place, image: images.refs.pool, replicas: settings.poolReplicas, after: [...namespace, ...images.loaded] });
  const endpoint = new ModelEndpoint("model", { cluster, place, model, image: images.refs["model-endpoint"], after: [...namespace, ...images.loaded] });
  const harness = new Harness("harness", { cluster, place, image: images.refs.harness, model, transport: settings.transport, after: [knative.ready, ...images.loaded, ...secrets.ready, ...redis.ready] });

  const tunnel = openTunnel(settings, cluster);
  const worker = new HostWorker("host-worker", { container: settings.workerContainer, id: settings.workerId, image: images.workerId, capacity: settings.workerCapacity, token: secrets.workerToken, tunnel, ca: plan.relayCa ?? tls?.ca, network: cluster.network, after: relay.ready });

  const args = proofArgs({ plan, cluster, images, redis, relay, pool, harness, worker });
  const proof = new Proof("proof", args, { dependsOn: [policies, ...relay.ready, ...pool.ready, ...endpoint.ready, ...harness.ready, ...worker.ready] });
  const vignettes = settings.vignettes ? [new Vignettes("vignettes", args, { dependsOn: [proof] })] : [];

  return {
    proof: proof.status,
    verdicts: proof.verdicts,
    evidence: proof.evidence,
    vignettes: vignettes.map((v) => ({ status: v.status, evidence: v.evidence })),
    transport: settings.transport,
    tunnel,
    model: model.label,
    next: nextSteps(settings),
    kubeconfig: cluster.kubeconfig,
  };
};
