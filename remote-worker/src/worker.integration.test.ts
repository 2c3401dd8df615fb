import { afterEach, expect, it, describe } from "vitest";
import { startRelay, startWorkerProcess, stopAll } from "./testkit";

afterEach(stopAll);

describe.each([0, 1] as const)("against a protocol %i relay", (protocol) => {
  it("attaches, runs commands and answers with status and split streams", async () => {
    const relay = await startRelay(protocol);
    const worker = startWorkerProcess(relay);
    const peer = await relay.attached();
    await worker.process.line(/attached, serving execs/);
    expect(peer.hello).toMatchObject({ sandboxId: "sbx-test", capacityMax: 4, protocol: 1 });
    expect(peer.token).toBe("Bearer test-token");
    const a = await peer.exec({ command: "echo out; echo err >&2; exit 7" }).done();
    expect([a.out, a.err, a.end?.exitCode]).toEqual(["out\n", "err\n", 7]);
    expect(a.accepted.length).toBe(protocol);
  });
});
