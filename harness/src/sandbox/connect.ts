import { GrpcRelayTransport } from "@dialout/transports";
import { LocalTransport } from "./local";
import type { Connector } from "./pool";
import type { SandboxSettings } from "./settings";

/** The real transports. */
export function connector(settings: SandboxSettings): Connector {
  const { relay } = settings;
  return {
    pod: (pod) => {
      throw new Error(`no transport for pod ${pod}`);
    },
    remote: (sandboxId, addr) => new GrpcRelayTransport({ addr, sandboxId, execToken: relay?.execToken, tls: relay?.tls, graceMs: relay?.graceMs }),
    local: () => new LocalTransport(),
  };
}
