// For tests only: a transport against a relay that follows a script; both are closed after each test.
import { afterEach, expect } from "vitest";
import type { TransportError } from "../errors";
import { GrpcRelayTransport, type GrpcRelayOptions } from "../relay";
import { ScriptedRelay, type Script } from "./scripted-relay";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const o of open.splice(0).reverse()) await o.close();
});

export async function setup(script: Script, options: Partial<GrpcRelayOptions> = {}) {
  const relay = await new ScriptedRelay({ describe: () => ({}), ...script }).start();
  const transport = new GrpcRelayTransport({ addr: relay.addr, sandboxId: "sbx-1", execToken: "exec-token", graceMs: 3_000, abortWaitMs: 500, slackMs: 200, floodMs: 200, ...options });
  open.push({ close: () => relay.kill() }, transport);
  return { relay, transport };
}

export const rejection = (p: Promise<unknown>): Promise<TransportError> => p.then(() => expect.fail("it resolved"), (e: unknown) => e as TransportError);
/** A report of a kill that went well. */
export const kill = { found: 2, killed: 2, remaining: 0, verified: true, detail: "" };
