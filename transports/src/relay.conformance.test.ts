// Against real relay and worker processes of this machine, or against a live relay: CONFORMANCE_RELAY_ADDR=host:port
// CONFORMANCE_SANDBOX_ID=.. SH_RELAY_EXEC_TOKEN=.. [CONFORMANCE_RELAY_CA_FILE=..] [CONFORMANCE_RELAY_SERVER_NAME=..].
import { readFileSync } from "node:fs";
import { afterAll } from "vitest";
import { conformance } from "./conformance";
import { GrpcRelayTransport } from "./relay";
import { World } from "./testkit/world";

const { CONFORMANCE_RELAY_ADDR: addr, CONFORMANCE_SANDBOX_ID: sandboxId = "sbx-laptop-demo", SH_RELAY_EXEC_TOKEN: execToken, CONFORMANCE_RELAY_CA_FILE: caFile, CONFORMANCE_RELAY_SERVER_NAME: serverName } = process.env;
let world: World | undefined;
afterAll(() => world?.stop());

conformance(
  addr ? `relay at ${addr}, sandbox ${sandboxId}` : "relay and worker of this machine",
  async () => {
    if (addr) return new GrpcRelayTransport({ addr, sandboxId, execToken, tls: caFile ? { ca: readFileSync(caFile), serverName } : undefined });
    world = await World.start();
    return world.transport();
  },
);
