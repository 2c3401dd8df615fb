// Redelivery with the real programs: whatever breaks, the command ran once and its caller knows how it ended.
import { until } from "@dialout/common/testkit";
import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { rejection } from "./conformance";
import { Phased } from "./testkit/phased";
import { processesNaming } from "./testkit/processes";
import { World } from "./testkit/world";

let world: World;
beforeAll(async () => {
  world = await World.start({ relay: { SH_RELAY_HEARTBEAT_MS: "300", SH_RELAY_DEADLINE_MS: "1500" } });
});
afterAll(() => world?.stop());
afterEach(() => {
  world.execLeg.heal();
  world.attachLeg.heal();
});

/** Outcomes that the worker has on its disk. */
const outcomes = () => readFileSync(path.join(world.state, "journal"), "latin1").split('"finished"').length - 1;

describe("the relay is killed and comes back", () => {
  it.each(["mid-output", "before the end"] as const)("%s", async (phase) => {
    const c = new Phased(world, world.transport(), phase);
    await c.reached();
    await world.relay.stop("SIGKILL");
    c.letGo();
    await world.startRelay();
    expect((await c.expectWhole()).deliveries).toBeGreaterThan(1);
  });
});

describe("the worker", () => {
  it("killed while a command runs: interrupted, never run again, nothing of it left (ablative-io/aion#69)", async () => {
    const c = new Phased(world, world.transport(), "mid-output");
    await c.reached();
    await world.worker.stop("SIGKILL");
    await world.startWorker();
    const e = await rejection(c.outcome);
    expect(e).toMatchObject({ code: "interrupted", message: expect.stringMatching(/^interrupted/) });
    expect(c.effects()).toBe(1);
    await until("its processes are gone", () => processesNaming(c.id).length === 0);
  });

  it("killed after a command ended whose outcome did not get through: replayed from the journal (OpenFn/kit#1179)", async () => {
    const c = new Phased(world, world.transport(), "before the end");
    await c.reached();
    const before = outcomes();
    world.execLeg.cut();
    c.letGo();
    await until("the command has ended", () => processesNaming(c.id).length === 0);
    await until("the outcome is in the journal", () => outcomes() > before);
    await world.worker.stop("SIGKILL");
    await world.startWorker();
    world.execLeg.heal();
    expect(await c.expectWhole()).toMatchObject({ replayed: true });
  });

  it("killed for good: the caller is told when the grace time is over, and it is no success (kubernetes/kubernetes#73056, cloudflare/sandbox-sdk#101)", async () => {
    const c = new Phased(world, world.transport({ graceMs: 1_500 }), "mid-output");
    await c.reached();
    await world.worker.stop("SIGKILL");
    expect(await rejection(c.outcome)).toMatchObject({ code: "disconnected", message: "worker disconnected", kill: { verified: false } });
    await world.startWorker();
  });

  it("frozen: the caller's own timer answers, and the kill is not claimed", async () => {
    const outcome = rejection(world.transport({ abortWaitMs: 1_000 }).exec("sleep 60", { timeout: 1 }));
    await new Promise((r) => setTimeout(r, 300));
    world.worker.signal("SIGSTOP");
    const before = Date.now();
    expect(await outcome).toMatchObject({ code: "timeout", message: "timeout:1", kill: { verified: false } });
    expect(Date.now() - before).toBeLessThan(8_000);
    const from = world.worker.lines.length;
    world.worker.signal("SIGCONT");
    await world.attached(from);
  });
});

describe("a frozen relay", () => {
  it("does not hold up the caller's own timer", async () => {
    const t = world.transport({ abortWaitMs: 1_000 });
    expect((await t.exec("echo warm")).stdout.toString()).toBe("warm\n");
    const outcome = rejection(t.exec("sleep 60", { timeout: 1 }));
    world.relay.signal("SIGSTOP");
    const from = world.worker.lines.length;
    try {
      expect(await outcome).toMatchObject({ code: "timeout", message: "timeout:1", kill: { verified: false } });
      await world.worker.line(/liveness|no frame from the relay/, 10_000, from);
    } finally {
      world.relay.signal("SIGCONT");
    }
    await world.attached(from);
  });
});

describe("a link that is cut in mid-output", () => {
  it.each(["execLeg", "attachLeg"] as const)("%s", async (leg) => {
    const c = new Phased(world, world.transport(), "mid-output");
    await c.reached();
    world[leg].cut();
    c.letGo();
    world[leg].heal();
    expect((await c.expectWhole()).deliveries).toBeGreaterThan(1);
  });

  it("and stays so: the worker kills the command when nobody has listened for the grace time", async () => {
    const c = new Phased(world, world.transport({ graceMs: 1_000 }), "mid-output");
    await c.reached();
    expect(processesNaming(c.id)).not.toEqual([]);
    world.attachLeg.cut();
    expect(await rejection(c.outcome)).toMatchObject({ code: "disconnected" });
    await until("its processes are gone", () => processesNaming(c.id).length === 0);
    const from = world.worker.lines.length;
    world.attachLeg.heal();
    await world.attached(from);
  });

  it("and is aborted meanwhile: the kill is confirmed as soon as the link is back", async () => {
    await world.freshWorker();
    const stop = new AbortController();
    const c = new Phased(world, world.transport({ abortWaitMs: 10_000 }), "mid-output", { signal: stop.signal });
    await c.reached();
    world.attachLeg.cut();
    stop.abort();
    world.attachLeg.heal();
    expect(await rejection(c.outcome)).toMatchObject({ code: "aborted", kill: { verified: true, remaining: 0 } });
    expect(processesNaming(c.id)).toEqual([]);
  });
});
