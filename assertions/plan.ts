import type { Planned } from "./evidence";
import type { ProofInput } from "./input";

/** The user's own kubeconfig knows nothing of this cluster; the stack's output does. */
export const KUBE_ACCESS = "./demo pulumi stack output kubeconfig --show-secrets > kubeconfig.tmp && export KUBECONFIG=$PWD/kubeconfig.tmp;";

/** The checks of a proof in their order; the names are stable, users and tests refer to them. */
export function proofPlan(input: ProofInput): Planned[] {
  const { namespace: ns, worker, arms, relay, redis } = input;
  const kubectl = `kubectl${input.context ? ` --context ${input.context}` : ""} -n ${ns}`;
  const logs = (ksvc: string) => `${kubectl} logs -l serving.knative.dev/service=${ksvc} -c user-container --tail 50`;
  const workerLog = `docker logs --tail 50 ${worker.container}`;
  const plan: [check: string, next: string][] = [
    ["cluster-answers", "./demo doctor"],
    ["arms-wired", `${kubectl} get ksvc ${Object.values(arms).join(" ")}`],
    ["harness-answers", `${kubectl} get ksvc,pods; ${logs(arms.pods)}`],
    ["model-answers", input.model.scripted ? `${kubectl} logs deployment/model-endpoint --tail 50` : "pulumi config set modelBaseUrl URL; pulumi config set --secret modelApiKey KEY; ./demo up"],
    ["worker-running", `docker start ${worker.container}; ${workerLog}; if it is gone: ./demo pulumi refresh, then ./demo up`],
    ["worker-trust", `docker inspect ${worker.container}`],
    ["worker-no-listener", `docker exec ${worker.container} cat /proc/net/tcp`],
    ["pool-pods", `${kubectl} get pods -l ${input.poolSelector} -o wide`],
    ["os-release-read", `${kubectl} describe pods -l ${input.poolSelector}; ${workerLog}`],
    ["patterns-discriminate", "pulumi config set podsPattern TEXT; pulumi config set remotePattern TEXT (texts that only one of the two os-release files holds), or empty to have them chosen"],
    ["presence", `${workerLog}; ${kubectl} logs deployment/${relay.service} --tail 50; ${kubectl} exec deployment/${redis.service} -- redis-cli HGETALL sh:sandbox:records`],
    ["remote-selector-empty", `${kubectl} get pods -l ${input.remoteSelector}`],
    ["sessions-fresh", "./demo prove"],
    ["leaf-pods-own", logs(arms.pods)],
    ["leaf-pods-other", logs(arms.pods)],
    ["leaf-remote-other", `${logs(arms.remote)}; ${workerLog}`],
    ["leaf-remote-own", `${logs(arms.remote)}; ${workerLog}`],
    ["marker-planted", `docker exec ${worker.container} sh -c 'df /tmp; id'`],
    ["marker-absent-on-pods", `${kubectl} get pods -l ${input.poolSelector}`],
    ["marker-leaf-remote", `${logs(arms.remote)}; ${workerLog}`],
    ["marker-leaf-pods", logs(arms.pods)],
    ["marker-removed", `docker exec -u 0 ${worker.container} sh -c 'rm -f /tmp/dialout-proof-*'`],
    ["miswired-control", `${kubectl} get ksvc ${arms.miswired} -o yaml`],
    ["sessions-recorded", `${kubectl} exec deployment/${redis.service} -- redis-cli --scan --pattern 'session:*'`],
    ["hops-agree", `${workerLog}; ${kubectl} logs deployment/${relay.service} --tail 50`],
    ["worker-still-there", workerLog],
  ];
  return plan.map(([check, next]) => ({ check, next: withAccess(next) }));
}

export const withAccess = (next: string) => (next.includes("kubectl ") ? `${KUBE_ACCESS} ${next}` : next);
