// What others reported of commands that run in sandboxes like ours; docs/reports.md lists the reports. Real relay, real worker.
// Reports of links and sessions: reports-links.integration.test.ts.
import { freePort, until } from "@dialout/common/testkit";
import { existsSync, statSync } from "node:fs";
import net from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rejection } from "./conformance";
import type { GrpcRelayTransport } from "./relay";
import { processesNaming } from "./testkit/processes";
import { World } from "./testkit/world";

let world: World;
let sandbox: GrpcRelayTransport;
let serial = 0;
/** A sleep that only this test's command sleeps. */
const nap = () => `sleep 3${process.pid}.${++serial}`;

beforeAll(async () => {
  world = await World.start({ relay: { SH_RELAY_HEARTBEAT_MS: "300", SH_RELAY_DEADLINE_MS: "1500" } });
  sandbox = world.transport();
});
afterAll(() => world?.stop());

const answers = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = net.connect(port, "127.0.0.1").on("connect", () => resolve(true)).on("error", () => resolve(false));
    socket.on("close", () => socket.destroy());
  });
/** A server as dev servers are: started through two shells, deaf to polite signals. */
const server = (port: number) => `bash -c 'trap "" TERM INT HUP; "${process.execPath}" -e "require(\\"http\\").createServer((q, r) => r.end()).listen(${port}, \\"127.0.0.1\\")"; true'`;

describe("killed is dead", () => {
  it("e2b-dev/E2B#1034: an abort comes back with everything gone that the command had started", async () => {
    const z = nap();
    const ticks = world.file("ticks");
    const stop = new AbortController();
    const outcome = rejection(sandbox.exec(`(while :; do echo x >> '${ticks}'; sleep 0.02; done) & bash -c '${z} & wait' & ${z}`, { signal: stop.signal }));
    await until("all of it runs", () => processesNaming(z).length >= 3 && existsSync(ticks));
    stop.abort();
    expect(await outcome).toMatchObject({ code: "aborted", kill: { remaining: 0, verified: true } });
    expect(processesNaming(z)).toEqual([]);
    const { size } = statSync(ticks);
    expect((await sandbox.exec(`sleep 0.3; stat -c %s '${ticks}'`)).stdout.toString()).toBe(`${size}\n`);
  });

  it("e2b-dev/E2B#1031: a time limit ends the server that the command's leader started, and its port is free", async () => {
    const port = await freePort();
    const outcome = rejection(sandbox.exec(`${server(port)} & wait`, { timeout: 6 }));
    await until("it serves", () => answers(port));
    expect(await outcome).toMatchObject({ code: "timeout", message: "timeout:6", kill: { remaining: 0, verified: true } });
    expect(await answers(port)).toBe(false);
  });

  it("cloudflare/sandbox-sdk#388: a kill that says it worked has reached the children that left their group, too", async () => {
    const port = await freePort();
    const stop = new AbortController();
    const outcome = rejection(sandbox.exec(`set -m; (setsid ${server(port)} &) & wait; ${nap()}`, { signal: stop.signal }));
    await until("it serves", () => answers(port));
    stop.abort();
    const e = await outcome;
    expect(e.kill).toMatchObject({ remaining: 0, verified: true });
    expect(e.kill?.killed).toBeGreaterThanOrEqual(2);
    expect(await answers(port)).toBe(false);
  });
});

describe("time limits", () => {
  it("daytonaio/daytona#2602, cloudflare/sandbox-sdk#438: a limit holds though grandchildren hold the pipes, and meanwhile others work", async () => {
    const z = nap();
    const late = world.file("late");
    const stuck = rejection(sandbox.exec(`trap '' TERM; echo "${z}; touch '${late}'" | base64 | base64 -d | sh | cat`, { timeout: 3 }));
    await until("it is stuck", () => processesNaming(z).length > 0);
    expect((await sandbox.exec("echo beside")).stdout.toString()).toBe("beside\n");
    expect(await stuck).toMatchObject({ code: "timeout", message: "timeout:3", kill: { verified: true } });
    expect([processesNaming(z), existsSync(late)]).toEqual([[], false]);
    expect((await sandbox.exec("echo after")).stdout.toString()).toBe("after\n");
  });

  it("daytonaio/daytona#4750: the caller's limit is the only one; silence longer than every time on the way ends nothing", async () => {
    const t = world.transport({ graceMs: 500, connectMs: 500, abortWaitMs: 500, floodMs: 500, slackMs: 100, keepaliveMs: 500 });
    const r = await t.exec("sleep 4; exit 6", { timeout: 600 });
    expect([r.exitCode, r.deliveries]).toEqual([6, 1]);
  });
});

describe("nothing waits for what does not come", () => {
  it("daytonaio/daytona#4230: a here-document that ends the command, and a subprocess that outlives it", async () => {
    const file = world.file("heredoc");
    expect((await sandbox.exec(`cat << 'EOF' > '${file}'\nhello $world\nEOF`, { timeout: 30 })).exitCode).toBe(0);
    const z = nap();
    const r = await sandbox.exec(`cat '${file}'; ${z} & exit 3`, { timeout: 30 });
    expect([r.stdout.toString(), r.exitCode]).toEqual(["hello $world\n", 3]);
    expect(processesNaming(z)).toEqual([]);
  });

  it("daytonaio/daytona#3770, NVIDIA/OpenShell#828: a command that reads its input sees the end of it, given or not", async () => {
    expect((await sandbox.exec("cat; read -r x; echo \"end $?\"", { timeout: 30 })).stdout.toString()).toBe("end 1\n");
    expect((await sandbox.exec("cat; read -r x; echo \"end $?\"", { stdin: Buffer.from("in\n"), timeout: 30 })).stdout.toString()).toBe("in\nend 1\n");
  });
});

describe("every byte and the status", () => {
  const numbers = Buffer.from(Array.from({ length: 200_000 }, (_, i) => `${i + 1}\n`).join(""));

  it("kubernetes/kubernetes#124571: output over a slow link is whole when its status says so", async () => {
    const legs = [world.execLeg, world.attachLeg];
    for (const leg of legs) leg.set({ kind: "bandwidth", bytesPerSecond: 1_500_000 });
    try {
      const r = await sandbox.exec("seq 1 200000");
      expect([r.exitCode, r.truncated, r.stdout.equals(numbers)]).toEqual([0, false, true]);
    } finally {
      for (const leg of legs) leg.heal();
    }
  });

  it("containers/podman#9096: many single bytes of a command that ends at once", async () => {
    const r = await sandbox.exec("dd if=/dev/zero bs=1 count=100000 2>/dev/null");
    expect([r.exitCode, r.stdout.length]).toEqual([0, 100_000]);
  });

  it("daytonaio/daytona#5027, gitpod-io/gitpod#13562: commands that end as soon as they have printed keep output and status", async () => {
    const all = await Promise.all(Array.from({ length: 60 }, (_, i) => sandbox.exec(`echo ${i}; exit ${i}`)));
    expect(all.map((r) => [r.stdout.toString(), r.exitCode])).toEqual(all.map((_, i) => [`${i}\n`, i]));
  });
});
