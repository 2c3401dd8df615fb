import { type Cluster } from "./cluster";
import { ports } from "./manifests/common";
import { type Settings } from "./settings";

/** How the worker's outbound connection reaches the relay's attach port. */
export interface Tunnel {
  readonly mode: "network" | "address";
  /** HOST:PORT the worker dials. */
  readonly address: string;
  readonly tls: boolean;
  /** For people: the path the connection takes. */
  readonly path: string;
}

/** The tunnel of these settings. Nothing listens on the host in either mode. */
export function openTunnel(settings: Pick<Settings, "tunnel" | "relayAddress" | "relayTls" | "attachTls" | "workerContainer">, cluster: Pick<Cluster, "node">): Tunnel {
  if (settings.tunnel === "network") {
    const address = `${cluster.node}:${ports.attachNode}`;
    const tls = settings.attachTls;
    return { mode: "network", address, tls, path: `${settings.workerContainer} -> Docker network of the cluster -> ${address} (NodePort${tls ? ", TLS" : ""}) -> relay:${ports.attach}; no host port` };
  }
  const address = settings.relayAddress!;
  return { mode: "address", address, tls: settings.relayTls, path: `${settings.workerContainer} -> ${address} (${settings.relayTls ? "TLS" : "plaintext"}) -> relay` };
}
