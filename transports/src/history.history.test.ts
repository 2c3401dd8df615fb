// Many commands under random faults; each appends its own id to a file. Afterwards: every acknowledged id is there exactly once, every other
// one at most once, and nothing is left behind. Long form: npm run test:history -- --execs 5000 --seed 7
import { until } from "@dialout/common/testkit";
import { readFileSync } from "node:fs";
import Redis from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { TransportError } from "./errors";
import { Chaos } from "./testkit/chaos";
import { processesNaming } from "./testkit/processes";
import { countFrom, Random, seedFrom } from "./testkit/random";
import { World } from "./testkit/world";

const execs = countFrom("HISTORY_EXECS", 150);
const seed = seedFrom("HISTORY_SEED");
const AT_ONCE = 6;
/** What a caller may be told under these faults. Anything else is a bug. */
const HONEST = new Set(["interrupted", "disconnected", "unavailable", "not_found", "aborted", "timeout", "busy"]);

interface Outcome {
  id: string;
  acknowledged: boolean;
  code?: string;
  wrong?: string;
}

let world: World;
beforeAll(async () => {
  world = await World.start({ relay: { SH_RELAY_HEARTBEAT_MS: "300", SH_RELAY_DEADLINE_MS: "1500" } });
});
afterAll(() => world?.stop());

async function runOne(n: number, random: Random, transport: ReturnType<World["transport"]>): Promise<Outcome> {
  const id = `id-${seed}-${n}`;
  const lines = random.int(0, 2_000);
  const abortAfter = random.chance(0.08) ? random.int(0, 400) : undefined;
  const timeout = random.chance(0.05) ? random.int(1, 2) : 120;
  const command = `echo ${id} >> '${world.file("effects")}'; sleep 0.${random.int(0, 4)}; seq 1 ${lines}; sleep 0.${random.int(0, 2)}; echo ${id}; exit ${n % 200}`;
  const stop = new AbortController();
  const timer = abortAfter === undefined ? undefined : setTimeout(() => stop.abort(), abortAfter);
  try {
    const r = await transport.exec(command, { timeout, signal: stop.signal });
    const expected = `${Array.from({ length: lines }, (_, i) => `${i + 1}\n`).join("")}${id}\n`;
    const wrong = r.exitCode !== n % 200 ? `exit code ${r.exitCode} instead of ${n % 200}` : r.stdout.toString() !== expected ? `${r.stdout.length} bytes of output, not the ${expected.length} expected` : undefined;
    return { id, acknowledged: true, wrong };
  } catch (e) {
    const { code, message, kill } = e as TransportError;
    if (!HONEST.has(code)) return { id, acknowledged: false, code, wrong: `rejected with ${code}: ${message}` };
    if (code === "aborted" && abortAfter === undefined) return { id, acknowledged: false, code, wrong: "aborted by nobody" };
    return { id, acknowledged: false, code, wrong: code === "aborted" && !kill ? "aborted without a kill report" : undefined };
  } finally {
    clearTimeout(timer);
  }
}

it(`${execs} commands, seed ${seed}`, async () => {
  const chaos = new Chaos(world, new Random(seed));
  const random = new Random(seed + 1);
  const transports = Array.from({ length: 3 }, () => world.transport({ keepaliveMs: 600, graceMs: 25_000 }));
  const outcomes: Outcome[] = [];
  chaos.start();
  let next = 0;
  const lane = async () => {
    while (next < execs) {
      const n = next++;
      outcomes.push(await runOne(n, new Random(seed + 1_000_003 * (n + 1)), random.pick(transports)));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  await chaos.stop();

  const seen = new Map<string, number>();
  for (const id of readFileSync(world.file("effects"), "utf8").trim().split("\n")) seen.set(id, (seen.get(id) ?? 0) + 1);
  const count = (id: string) => seen.get(id) ?? 0;
  const violations = [
    ...outcomes.filter((o) => o.wrong).map((o) => `${o.id}: ${o.wrong}`),
    ...outcomes.filter((o) => o.acknowledged && count(o.id) !== 1).map((o) => `${o.id}: acknowledged, and ran ${count(o.id)} times`),
    ...outcomes.filter((o) => !o.acknowledged && count(o.id) > 1).map((o) => `${o.id}: ${o.code}, and ran ${count(o.id)} times`),
    ...[...seen.keys()].filter((id) => !outcomes.some((o) => o.id === id)).map((id) => `${id}: ran, and nobody asked for it`),
  ];
  const codes = new Map<string, number>();
  for (const o of outcomes) if (!o.acknowledged) codes.set(o.code ?? "?", (codes.get(o.code ?? "?") ?? 0) + 1);
  const list = (m: Map<string, number>) => [...m].map(([k, v]) => `${v} ${k}`).join(", ") || "none";
  const acknowledged = outcomes.filter((o) => o.acknowledged).length;
  process.stdout.write(`history: seed ${seed}, ${execs} execs, ${acknowledged} acknowledged, others: ${list(codes)}; faults: ${list(chaos.counts)}; ${violations.length} violations\n`);

  expect(violations).toEqual([]);
  expect(acknowledged).toBeGreaterThan(execs / 2);
  await until("no process of a command is left", () => processesNaming(world.scratch).length === 0, 40_000).catch(() => expect(processesNaming(world.scratch)).toEqual([]));

  await world.worker.stop("SIGTERM");
  const redis = new Redis(world.redis.url);
  try {
    await until("the presence record is gone", async () => (await redis.hlen("sh:sandbox:records")) === 0);
    expect(await redis.keys("*leases*")).toEqual([]);
  } finally {
    redis.disconnect();
  }
});
