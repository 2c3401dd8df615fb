import { type Settings } from "./settings";

/** Commands worth trying after an `up`, for the stack's output `next`. */
export function nextSteps(s: Pick<Settings, "transport" | "workerContainer" | "namespace">): string[] {
  const other = s.transport === "pods" ? "remote" : "pods";
  return [
    `pulumi config set transport ${other} && pulumi preview --diff   # what a flip changes (or: ./demo flip ${other})`,
    `docker inspect ${s.workerContainer}   # no port, no mount, no token`,
    `docker logs ${s.workerContainer}   # what the worker did`,
    "pulumi stack output kubeconfig --show-secrets > kubeconfig.tmp   # then: KUBECONFIG=kubeconfig.tmp kubectl get ksvc" + (s.namespace === "default" ? "" : ` -n ${s.namespace}`),
    "./demo prove   # the proof once more; with --vignettes also the longer demonstrations",
    "pulumi destroy   # removes all of it (or: ./demo down)",
  ];
}
