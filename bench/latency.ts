import { GrpcRelayTransport, KubectlTransport } from "@dialout/transports";
import { spawned } from "./setup";
import { spread, time, type Spread } from "./stats";

export interface PodTarget { kubectl: string; kubeconfig: string; context?: string; namespace: string; pod: string }

/** Where the same empty command is timed; a path that this machine does not have is left out. */
export async function latency(relay: GrpcRelayTransport, runs: number, container?: string, pod?: PodTarget): Promise<Record<string, Spread>> {
  const result: Record<string, Spread> = {};
  // One after the other in turn, so that a slow moment of the machine does not fall on one of them alone.
  const local: number[] = [], viaRelay: number[] = [];
  const spawnTrue = () => spawned("bash", ["-c", "true"]);
  await time(0, 20, spawnTrue);
  await time(0, 20, () => relay.exec("true"));
  for (let i = 0; i < runs; i++) {
    local.push(...(await time(1, 0, spawnTrue)));
    viaRelay.push(...(await time(1, 0, () => relay.exec("true"))));
  }
  result["local spawn"] = spread(local);
  result.relay = spread(viaRelay);
  // Without a pause the worker makes ready for the next command while the present one runs.
  result["local spawn, back to back"] = spread(await time(runs, 0, spawnTrue));
  result["relay, back to back"] = spread(await time(runs, 0, () => relay.exec("true")));
  const few = Math.max(10, Math.round(runs / 10));
  if (container) result["docker exec"] = spread(await time(few, 2, () => spawned("docker", ["exec", container, "bash", "-c", "true"])));
  if (pod) {
    const base = ["--kubeconfig", pod.kubeconfig, ...(pod.context ? ["--context", pod.context] : []), "exec", "-n", pod.namespace, pod.pod, "--", "bash", "-c", "true"];
    result["kubectl exec"] = spread(await time(few, 2, () => spawned(pod.kubectl, base)));
    const transport = new KubectlTransport({ kubectl: pod.kubectl, kubeconfig: pod.kubeconfig, context: pod.context, namespace: pod.namespace, pod: pod.pod });
    result.KubectlTransport = spread(await time(few, 2, () => transport.exec("true")));
    await transport.close();
  }
  return result;
}

/** Milliseconds until the first output byte of a command that goes on for long after it. */
export async function firstByte(relay: GrpcRelayTransport, runs: number): Promise<Spread> {
  const samples: number[] = [];
  for (let i = 0; i < runs; i++) {
    const t = process.hrtime.bigint();
    const stop = new AbortController();
    await relay.exec("echo x; exec sleep 30", {
      signal: stop.signal,
      onData: () => {
        samples.push(Number(process.hrtime.bigint() - t) / 1e6);
        stop.abort();
      },
    }).catch((e: Error) => {
      if (e.message !== "aborted") throw e;
    });
  }
  return spread(samples);
}
