import { GrpcRelayTransport, KubectlTransport } from "@dialout/transports";
import { LocalTransport } from "./local";
import type { Connector } from "./pool";
import type { SandboxSettings } from "./settings";

/** The real transports. */
export function connector(settings: SandboxSettings): Connector {
  const { relay, kubectl, namespace, context } = settings;
  return {
    pod: (pod) => new KubectlTransport({ kubectl, namespace, context, pod }),
    remote: (sandboxId, addr) => new GrpcRelayTransport({ addr, sandboxId, execToken: relay?.execToken, tls: relay?.tls, graceMs: relay?.graceMs }),
    local: () => new LocalTransport(),
  };
}
