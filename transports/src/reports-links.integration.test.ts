// What others reported of links, sessions and shutdowns in systems like this one; docs/reports.md lists the reports. Real relay, real worker.
import { freePort, until } from "@dialout/common/testkit";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { rejection } from "./conformance";
import { Phased } from "./testkit/phased";
import { processesNaming } from "./testkit/processes";
import { World, type WorldOptions } from "./testkit/world";

let world: World;
const tokenFile = () => path.join(world.dir, "token");
let health = 0;
const options: WorldOptions = { relay: {}, worker: {} };

/** A number of the relay's `/metrics`. */
async function metric(name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${health}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)`, "m").exec(text)?.[1]);
}

beforeAll(async () => {
  health = await freePort();
  // Deadlines stay as they are by default, 45 s: whatever works here in less time did not wait for one.
  options.relay = { SH_RELAY_HEALTH_PORT: String(health) };
  world = await World.start(options);
});
afterAll(() => world?.stop());
afterEach(() => {
  world.execLeg.heal();
  world.attachLeg.heal();
});

it("NVIDIA/OpenShell#1990: a session that is reset while a command runs, and a command that ends meanwhile: its call returns", async () => {
  const c = new Phased(world, world.transport(), "before the end");
  await c.reached();
  world.attachLeg.cut();
  c.letGo();
  await until("the command has ended", () => processesNaming(c.id).length === 0);
  world.attachLeg.heal();
  expect((await c.expectWhole()).deliveries).toBeGreaterThan(1);
});

it("Kirari04/p2pstream#119: a worker that comes back is taken at once, while its old connection still looks alive to the relay", async () => {
  const c = new Phased(world, world.transport(), "mid-output");
  await c.reached();
  const since = world.worker.lines.length;
  world.attachLeg.forget();
  await world.attached(since);
  c.letGo();
  expect((await c.expectWhole()).deliveries).toBe(2);
  expect(await metric("relay_attached_workers")).toBe(1);
});

it("Kirari04/p2pstream#112: callers that go away while their command is opened cost the others nothing", async () => {
  const c = new Phased(world, world.transport(), "mid-output");
  await c.reached();
  const hasty = Array.from({ length: 20 }, async (_, i) => {
    const t = world.transport({ graceMs: 200, abortWaitMs: 200 });
    const stop = new AbortController();
    const outcome = rejection(t.exec("sleep 300", { signal: stop.signal }));
    setTimeout(() => stop.abort(), i * 5);
    expect(await outcome).toMatchObject({ code: "aborted" });
    await t.close();
  });
  await Promise.all(hasty);
  c.letGo();
  expect((await c.expectWhole()).deliveries).toBe(1);
});

it("NVIDIA/OpenShell#3308: no broken session leaves the sandbox beyond recovery; same worker, same files", async () => {
  await world.freshWorker();
  const t = world.transport();
  await t.exec(`echo kept > '${world.file("workspace")}'`);
  const { pid } = world.worker;
  const faults = { reset: () => world.attachLeg.reset(), "half-close": () => world.attachLeg.halfClose("down"), forget: () => world.attachLeg.forget() };
  for (const [name, fault] of Object.entries(faults)) {
    const since = world.worker.lines.length;
    fault();
    await world.attached(since);
    expect((await t.exec(`cat '${world.file("workspace")}'`)).stdout.toString(), name).toBe("kept\n");
  }
  expect([world.worker.pid, world.worker.exit]).toEqual([pid, undefined]);
});

it("grpc/grpc-node#2578: a caller whose link goes silent, without an end, notices and loses nothing", async () => {
  const c = new Phased(world, world.transport({ keepaliveMs: 300 }), "mid-output");
  await c.reached();
  const dialled = world.execLeg.accepted;
  world.execLeg.set({ kind: "black-hole" });
  c.letGo();
  await until("the caller dials anew", () => world.execLeg.accepted > dialled);
  world.execLeg.heal();
  expect((await c.expectWhole()).deliveries).toBeGreaterThan(1);
});

it("NVIDIA/OpenShell#3159: a caller that is gone takes its command and all it spawned with it", async () => {
  const c = new Phased(world, world.transport({ graceMs: 500 }), "mid-output");
  await c.reached();
  expect(processesNaming(c.id)).not.toEqual([]);
  world.execLeg.cut();
  expect(await rejection(c.outcome)).toMatchObject({ code: expect.stringMatching(/disconnected|unavailable/) });
  await until("its processes are gone", () => processesNaming(c.id).length === 0);
  await until("the relay holds nothing of it", async () => (await metric("relay_execs_in_flight")) === 0);
});

it("kubernetes-sigs/apiserver-network-proxy#855: a worker that is connected and makes no progress holds no caller, and nothing piles up", async () => {
  options.relay = { ...options.relay, SH_RELAY_HEARTBEAT_MS: "500", SH_RELAY_DEADLINE_MS: "3000" };
  await world.relay.stop("SIGKILL");
  await world.startRelay();
  await world.freshWorker();
  const stuck = `sleep ${process.pid}.855`;
  world.worker.signal("SIGSTOP");
  try {
    const t = world.transport({ graceMs: 300, abortWaitMs: 300, slackMs: 100 });
    const calls = Array.from({ length: 30 }, () => rejection(t.exec(stuck, { timeout: 1 })));
    for (const e of await Promise.all(calls)) expect(e).toMatchObject({ code: "timeout", kill: { verified: false } });
    await until("the relay believes in it no more", async () => (await metric("relay_attached_workers")) === 0);
    expect(await metric("relay_execs_in_flight")).toBe(0);
    expect(await rejection(t.exec(stuck))).toMatchObject({ code: "not_found" });
  } finally {
    world.worker.signal("SIGCONT");
  }
  expect((await world.transport().exec("echo on")).stdout.toString()).toBe("on\n");
  await until("nothing of what was given up runs", () => processesNaming(stuck).length === 0);
});

// The last one: it leaves another worker behind.
it("openkaiden/kaiden#2654: a relay that comes back with other tokens gets its worker back, and the command that ran meanwhile", async () => {
  writeFileSync(tokenFile(), "token-before\n", { mode: 0o600 });
  options.worker = { SANDBOX_TOKEN: "", SANDBOX_TOKEN_FILE: tokenFile() };
  options.relay = { ...options.relay, SH_RELAY_TOKEN: "token-before" };
  await world.relay.stop("SIGKILL");
  await world.startRelay();
  await world.freshWorker();
  const c = new Phased(world, world.transport({ graceMs: 60_000 }), "mid-output");
  await c.reached();
  await world.relay.stop("SIGKILL");
  options.relay = { ...options.relay, SH_RELAY_TOKEN: "token-after" };
  await world.startRelay();
  await world.worker.line(/refuses the token/);
  writeFileSync(tokenFile(), "token-after\n");
  c.letGo();
  await c.expectWhole();
});
