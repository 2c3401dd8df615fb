import type { Planned } from "./evidence";
import type { ProofInput } from "./input";
import { withAccess } from "./plan";

/** The demonstrations in their order; stable names. */
export function vignettePlan({ namespace, worker, relay }: ProofInput): Planned[] {
  const worked = `docker logs --tail 100 ${worker.container}; kubectl -n ${namespace} logs deployment/${relay.service} --tail 100`;
  const plan: [string, string][] = [
    ["presence-before", `docker start ${worker.container}; ${worked}`],
    ["scratch", worked],
    ["streaming", worked],
    ["abort-kills-all", worked],
    ["timeout-worker", worked],
    ["timeout-caller", `docker unpause ${worker.container}; ${worked}`],
    ["output-cap", worked],
    ["relay-restart", `kubectl -n ${namespace} get pods; ${worked}`],
    ["network-cut", `docker inspect -f '{{json .NetworkSettings.Networks}}' ${worker.container}; ${worked}`],
    ["stop-start", `docker start ${worker.container}; ${worked}`],
    ["works-again", `docker restart ${worker.container}; ${worked}`],
    ["cleaned-up", `docker exec -u 0 ${worker.container} sh -c 'rm -rf /tmp/dialout-vignettes-*'`],
  ];
  return plan.map(([check, next]) => ({ check, next: withAccess(next) }));
}
