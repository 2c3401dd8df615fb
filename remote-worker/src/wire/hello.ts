import type { Hello } from "@dialout/proto";
import type { Env } from "@dialout/common";
import { onPath } from "../run/isolation";
import type { WorkerSettings } from "../settings";

const TOOLS = ["bash", "rg", "base64", "file", "python3", "git"];

/** The worker's introduction. Capabilities are the tools found on PATH, in upstream's order. */
export function makeHello(s: WorkerSettings, env: Env, ids: { instanceId: string; journalId: string }): Hello {
  return {
    sandboxId: s.sandboxId,
    labels: s.labels,
    capabilities: TOOLS.filter((t) => onPath(t, env)),
    image: s.image,
    arch: process.arch === "x64" ? "amd64" : process.arch,
    capacityMax: s.capacity,
    trust: s.trust,
    protocol: 1,
    ...ids,
  };
}
