import { execFile } from "node:child_process";
import { z } from "zod";
import type { SandboxSettings } from "./settings";

const podList = z.object({
  items: z.array(z.object({ metadata: z.object({ name: z.string().min(1), deletionTimestamp: z.string().optional() }) })),
});
const sandbox = z.object({ status: z.object({ selector: z.string().min(1) }) });

/** kubectl could not tell; never to be read as "there are none". */
export class KubectlError extends Error {
  override readonly name = "KubectlError";
}

type Where = Pick<SandboxSettings, "kubectl" | "namespace" | "context" | "kubectlTimeoutMs">;

function run(where: Where, args: string[], signal: AbortSignal): Promise<unknown> {
  const all = [...args, "-n", where.namespace, ...(where.context ? ["--context", where.context] : []), "-o", "json"];
  return new Promise((resolve, reject) => {
    execFile(where.kubectl, all, { timeout: where.kubectlTimeoutMs, killSignal: "SIGKILL", maxBuffer: 64 << 20, signal }, (error, stdout, stderr) => {
      if (error) return reject(new KubectlError(`${where.kubectl} ${all.join(" ")} failed: ${cause(error, stderr, where)}`));
      try {
        resolve(JSON.parse(stdout));
      } catch {
        reject(new KubectlError(`${where.kubectl} ${all.join(" ")} printed something that is not JSON`));
      }
    });
  });
}

function cause(error: Error & { code?: number | string | null; killed?: boolean }, stderr: string, where: Where): string {
  if (error.code === "ENOENT") return "no such program. Set KUBECTL to its path";
  if (error.killed) return `no answer within ${where.kubectlTimeoutMs} ms`;
  return stderr.trim().slice(-500) || error.message;
}

/** Names of Running pods that match, in kubectl's order; pods on their way out are left out. */
export async function runningPods(where: Where, selector: string, signal: AbortSignal): Promise<string[]> {
  const answer = await run(where, ["get", "pod", "-l", selector, "--field-selector=status.phase=Running"], signal);
  const parsed = podList.safeParse(answer);
  if (!parsed.success) throw new KubectlError(`${where.kubectl} get pod answered in an unknown form`);
  return parsed.data.items.filter((p) => p.metadata.deletionTimestamp === undefined).map((p) => p.metadata.name);
}

/** The first Running pod of a Sandbox resource, by the selector in its status. */
export async function podOfSandbox(where: Where, name: string, signal: AbortSignal): Promise<string> {
  const parsed = sandbox.safeParse(await run(where, ["get", "sandboxes.agents.x-k8s.io", name], signal));
  if (!parsed.success) throw new KubectlError(`Sandbox '${name}' has no status.selector yet`);
  const [pod] = await runningPods(where, parsed.data.status.selector, signal);
  if (pod === undefined) throw new KubectlError(`no Running pods for Sandbox '${name}' (selector '${parsed.data.status.selector}')`);
  return pod;
}
