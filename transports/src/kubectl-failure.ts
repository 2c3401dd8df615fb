import { TransportError } from "./errors";
import type { KubectlOptions } from "./kubectl-target";

/** The API server said no before anything ran. */
const REFUSED = /Error from server \((NotFound|Forbidden|Unauthorized|BadRequest)\)|You must be logged in to the server|pod .* does not have a container|container not found|cannot exec into a container in a completed pod/;
const NO_BASH = /exec: "bash": executable file not found|stat .*bash: no such file/;
const UNREACHABLE = /Unable to connect to the server|The connection to the server .* was refused|dial tcp|i\/o timeout|TLS handshake/;

export const wasRefused = (noise: string): boolean => REFUSED.test(noise) || NO_BASH.test(noise);

/** kubectl ended without the command's status: says what kubectl said, and what to look at. `started`: the command had begun. */
export function kubectlFailure(o: KubectlOptions, noise: string, exit: string, started: boolean): TransportError {
  const said = noise || "it said nothing";
  const pod = `pod ${o.namespace}/${o.pod}`;
  const context = o.context ? `--context ${o.context} ` : "";
  const look = `kubectl ${context}-n ${o.namespace}`;
  if (NO_BASH.test(noise)) return new TransportError("spawn", `start bash: ${pod} has no bash (${said})`);
  if (started) return new TransportError("disconnected", `the connection to ${pod} was lost while the command ran (kubectl ${exit}: ${said}). Look at: ${look} get pod ${o.pod}`, { retryable: true });
  if (/\(Forbidden\)/.test(noise)) return new TransportError("unauthenticated", `kubectl may not exec into ${pod}: ${said}. Check: ${look} auth can-i create pods/exec`);
  if (/\(Unauthorized\)|must be logged in/.test(noise)) return new TransportError("unauthenticated", `the API server refused kubectl's credential: ${said}. Check: ${look} auth whoami`);
  if (/\(NotFound\)/.test(noise)) return new TransportError("not_found", `${pod} cannot be used: ${said}. Look at: ${look} get pods`, { retryable: true });
  if (UNREACHABLE.test(noise)) return new TransportError("unavailable", `kubectl cannot reach the cluster: ${said}. Check: kubectl ${context}cluster-info`, { retryable: true });
  return new TransportError("kubectl", `kubectl exec on ${pod} failed (${exit}): ${said}. Look at: ${look} describe pod ${o.pod}`, { retryable: REFUSED.test(noise) });
}
