// The second half of the fault matrix: processes that die or freeze, and what they stand on. Relay and worker killed mid-command are in
// redelivery.integration.test.ts, the worker's full disk in remote-worker/src/exec/redelivery.integration.test.ts.
import { repoRoot, run, startRedis, until, type Running } from "@dialout/common/testkit";
import Redis from "ioredis";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Phased } from "./testkit/phased";
import { processesNaming } from "./testkit/processes";
import { World } from "./testkit/world";

const HEARTBEAT_MS = 500, DEADLINE_MS = 3_000;
const clock = { NODE_OPTIONS: `--require=${path.join(__dirname, "testkit/clock-step.cjs")}` };
let world: World;
beforeAll(async () => {
  world = await World.start({ relay: { SH_RELAY_HEARTBEAT_MS: String(HEARTBEAT_MS), SH_RELAY_DEADLINE_MS: String(DEADLINE_MS), ...clock }, worker: clock });
});
afterAll(() => world?.stop());

interface Result { exitCode?: number; stdout?: string; code?: string; deliveries?: number }
const callers: Running[] = [];
const caller = (command: string, graceMs = 30_000) => {
  const root = repoRoot();
  const c = run(process.execPath, [path.join(root, "scripts/run-ts.mjs"), path.join(root, "transports/src/testkit/caller.ts"), world.execLeg.addr, world.sandboxId, command, String(graceMs)], { label: "caller" });
  callers.push(c);
  return c;
};
const result = async (c: Running) => JSON.parse(await c.line(/^\{/, 60_000)) as Result;
afterEach(() => Promise.all(callers.splice(0).map((c) => c.stop())));

describe("the caller", () => {
  it("killed: its command is given up after the grace time and leaves nothing", async () => {
    const mark = world.file("orphan");
    const c = caller(`echo go; (setsid sleep 600.125 '${mark}' & ) 2>/dev/null; exec -a '${mark}' sleep 600.125`, 1_500);
    await c.line(/^go/);
    expect(processesNaming(mark).length).toBeGreaterThan(0);
    await c.stop("SIGKILL");
    await until("nothing of the command is left", () => processesNaming(mark).length === 0, 20_000);
  });

  it("frozen beyond every deadline: others are served meanwhile, and it gets its whole output once it goes on", async () => {
    const go = world.file("frozen.go"), effect = world.file("frozen.effect");
    const c = caller(`echo x >> '${effect}'; seq 1 1000; until [ -e '${go}' ]; do sleep 0.02; done; seq 1001 200000`);
    await c.line(/^1000$/);
    c.signal("SIGSTOP");
    writeFileSync(go, "");
    // What is measured is that others are served for longer than any deadline, not how fast.
    const end = performance.now() + 2 * DEADLINE_MS;
    while (performance.now() < end) expect((await world.transport().exec("echo served")).stdout.toString()).toBe("served\n");
    c.signal("SIGCONT");
    const r = await result(c);
    expect(r).toMatchObject({ exitCode: 0, stdout: Array.from({ length: 200_000 }, (_, i) => `${i + 1}\n`).join("") });
    expect((await world.transport().exec(`cat '${effect}'`)).stdout.toString()).toBe("x\n");
  });
});

describe("Redis", () => {
  it("killed and started anew, empty: commands go on, new ones run, and presence is written again", async () => {
    const c = new Phased(world, world.transport(), "mid-output");
    await c.reached();
    await world.redis.stop();
    expect((await world.transport().exec("echo during")).stdout.toString()).toBe("during\n");
    const anew = await startRedis(world.redis.port);
    const redis = new Redis(anew.url);
    try {
      await until("the record is there again", async () => (await redis.hexists("sh:sandbox:records", world.sandboxId)) === 1, 30_000);
      c.letGo();
      expect((await c.expectWhole()).deliveries).toBe(1);
    } finally {
      redis.disconnect();
      world.afterwards(() => anew.stop());
    }
  });
});

describe("the wall clock steps by an hour, there and back", () => {
  it.each([["relay", "forward"], ["worker", "forward"], ["relay", "back"], ["worker", "back"]] as const)("of the %s, %s: a running command and the link do not notice", async (who, _direction) => {
    const c = new Phased(world, world.transport(), "mid-output");
    await c.reached();
    const from = world[who].lines.length, others = who === "relay" ? world.worker : world.relay, otherLines = others.lines.length;
    world[who].signal("SIGUSR2");
    await world[who].line(/clock stepped/, 10_000, from);
    // Longer than the deadline by the monotonic clock: whoever counts in wall time has given up by now.
    await new Promise((r) => setTimeout(r, DEADLINE_MS + 2 * HEARTBEAT_MS));
    c.letGo();
    expect((await c.expectWhole()).deliveries).toBe(1);
    expect([...world[who].lines.slice(from), ...others.lines.slice(otherLines)].filter((l) => /detached|reconnect|deadline/i.test(l))).toEqual([]);
  });
});
