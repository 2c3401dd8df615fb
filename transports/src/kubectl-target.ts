import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from "node:child_process";
import { TransportError } from "./errors";
import { Noise } from "./kubectl-frames";

export interface KubectlOptions {
  /** Path or name of kubectl; default: environment KUBECTL, then `kubectl`. */
  kubectl?: string;
  namespace: string;
  pod: string;
  container?: string;
  context?: string;
  kubeconfig?: string;
  /** Environment of kubectl; default: this process's. */
  env?: NodeJS.ProcessEnv;
}

const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** Names come from a cluster's answers and from settings; one that starts with a dash would be read as an option. */
export function checkTarget(options: KubectlOptions): void {
  for (const key of ["namespace", "pod", "container"] as const) {
    const value = options[key];
    if (value !== undefined && !NAME.test(value)) {
      throw new TransportError("invalid", `${key} ${JSON.stringify(value.slice(0, 60))} must be a Kubernetes name: lower-case letters, digits, '-' and '.'. See: kubectl get pods -A`);
    }
  }
}

/** The contract's argument list. */
export function kubectlArgs(o: KubectlOptions, script: string): string[] {
  return [
    "exec", "-i", "-n", o.namespace,
    ...(o.kubeconfig ? ["--kubeconfig", o.kubeconfig] : []),
    ...(o.context ? ["--context", o.context] : []),
    ...(o.container ? ["-c", o.container] : []),
    o.pod, "--", "bash", "-c", script,
  ];
}

/** Starts kubectl in a process group of its own, so that `endGroup` reaches what it started in turn (credential helpers). */
export function startKubectl(o: KubectlOptions, script: string): ChildProcessWithoutNullStreams {
  const child = spawn(o.kubectl || process.env.KUBECTL || "kubectl", kubectlArgs(o, script), { stdio: "pipe", detached: true, env: o.env ?? process.env });
  // The command may end without reading its stdin.
  child.stdin.on("error", () => undefined);
  return child;
}

export function endGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // ended in the meantime
  }
}

/** Runs a short script in the pod. `stdout` is undefined when it did not end within `ms`; `noise` is what kubectl said. Never rejects. */
export function runInPod(o: KubectlOptions, script: string, ms: number): Promise<{ stdout: string | undefined; noise: string }> {
  return new Promise((resolve) => {
    const child = startKubectl(o, script);
    const noise = new Noise();
    const out = new Noise();
    const timer = setTimeout(() => {
      endGroup(child);
      resolve({ stdout: undefined, noise: `no answer within ${ms} ms` });
    }, ms);
    child.stdout.on("data", (d: Buffer) => out.add(d));
    child.stderr.on("data", (d: Buffer) => noise.add(d));
    child.once("error", (e) => noise.add(Buffer.from(e.message)));
    child.once("close", () => {
      clearTimeout(timer);
      resolve({ stdout: out.toString(), noise: noise.toString() });
    });
    child.stdin.end();
  });
}
