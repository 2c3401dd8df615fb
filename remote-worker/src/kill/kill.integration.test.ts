import { chmodSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "@dialout/common/testkit";
import { startRelay, startWorkerProcess, stopAll, tempDir, type Answer, type Peer } from "../testkit";

afterAll(stopAll);

/** Ways in which processes get away from a kill of the group. */
const ZOO: [string, string][] = [
  ["a background grandchild", `bash -c 'sleep 300 & wait' &`],
  ["setsid", `setsid sleep 300 &`],
  ["double fork", `( (sleep 300 &) & )`],
  ["double fork and setsid without an environment", `( env -i setsid bash -c 'setsid sleep 300 & disown; exit' & )`],
  ["nohup", `nohup sleep 300 >/dev/null 2>&1 &`],
  ["one that ignores signals", `bash -c 'trap "" TERM INT HUP; sleep 300; sleep 300' &`],
  ["one that holds the pipes", `setsid bash -c 'while :; do echo tick; sleep 0.2; done' &`],
  // Bounded, so that a failing test does not take the machine down.
  ["one that forks all the time", `setsid bash -c 'f() { [ "$1" -gt 0 ] || exit; sleep 300 & sleep 0.01; (f $(($1 - 1)) &) ; }; f 400' &`],
];

/** Processes of the machine whose command line holds the tag. */
function alive(tag: string): number[] {
  const out: number[] = [];
  for (const pid of readdirSync("/proc").filter((d) => /^\d+$/.test(d)).map(Number)) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      if (/\) [ZX]/.test(stat)) continue;
      if (readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(tag)) out.push(pid);
    } catch {
      // gone
    }
  }
  return out;
}

const modes: [string, Record<string, string>][] = [["pidns", {}], ["pidns", { SANDBOX_EXEC_USER: "1001" }], ["user", { SANDBOX_EXEC_USER: "1001" }], ["none", {}]];
const asRoot = process.getuid?.() === 0;

describe.each(asRoot ? modes : modes.slice(0, 1))("isolation %s %j", (mode, env) => {
  let peer: Peer;
  beforeAll(async () => {
    const relay = await startRelay(1);
    startWorkerProcess(relay, { SANDBOX_ISOLATION: mode, SANDBOX_CWD: "/tmp", ...env });
    peer = await relay.attached();
  });
  let n = 0;
  const tags: string[] = [];
  afterAll(() => {
    for (const tag of tags) for (const pid of alive(tag)) process.kill(pid, "SIGKILL");
  });
  // A sleep time that nobody else uses tells our processes from all others of the machine.
  const tagged = (command: string) => {
    const tag = `3${String(process.pid).padStart(7, "0")}${n++}.${mode.length}${Object.keys(env).length}`;
    tags.push(tag);
    return { tag, command: command.replaceAll("sleep 300", `sleep ${tag}`).replace("setsid bash -c 'while", `setsid bash -c ': ${tag}; while`) };
  };
  const start = (command: string, extra = {}) => peer.exec({ command, ...extra }) as Answer & { reqId: bigint };

  it.each(ZOO)("abort leaves nothing of %s", async (_, escapee) => {
    const { tag, command } = tagged(`${escapee}\necho up; sleep 300`);
    const a = start(command);
    await until("the command is up", () => a.out.includes("up") && alive(tag).length >= 2);
    peer.abort(a.reqId);
    await a.done();
    expect(alive(tag)).toEqual([]);
    expect(a.end).toMatchObject({ exitCode: -1, kill: { remaining: 0, verified: true } });
    expect(a.end?.kill?.found).toBeGreaterThanOrEqual(2);
  });

  it("a timeout leaves nothing of all of them together", async () => {
    const { tag, command } = tagged(`${ZOO.map(([, z]) => z).join("\n")}\nsleep 300`);
    const a = await start(command, { timeoutS: 2 }).done(30_000);
    expect(alive(tag)).toEqual([]);
    expect(a.error).toMatchObject({ message: "timeout:2", kill: { remaining: 0, verified: true } });
  });

  it("a normal end leaves nothing either, and reports what was left behind", async () => {
    const { tag, command } = tagged(`setsid nohup sleep 300 >/dev/null 2>&1 & ( env -i setsid sleep 300 >/dev/null 2>&1 & ); until [ "$(pgrep -fc '[s]leep 300')" -ge 2 ]; do :; done; exit 5`);
    const a = await start(command).done();
    expect(alive(tag)).toEqual([]);
    expect(a.end).toMatchObject({ exitCode: 5, kill: { found: 2, killed: 2, verified: true } });
  });

  it("leaves other commands alone", async () => {
    const other = start("sleep 1.5; echo alive");
    const a = start("setsid sleep 30 & sleep 30");
    await until("running", () => a.accepted.length > 0);
    peer.abort(a.reqId);
    await a.done();
    expect((await other.done()).out).toBe("alive\n");
  });

  it("a grandchild's file stops growing", async () => {
    const dir = tempDir("worker-tick-");
    chmodSync(dir, 0o777);
    const file = path.join(dir, "ticks");
    const a = start(`(setsid bash -c 'while :; do echo x >> ${file}; sleep 0.05; done' &); sleep 100`);
    const size = () => {
      try {
        return readFileSync(file).length;
      } catch {
        return 0;
      }
    };
    await until("it ticks", () => size() > 4);
    peer.abort(a.reqId);
    await a.done();
    const after = size();
    await new Promise((r) => setTimeout(r, 400)); // the absence of ticks is what is observed
    expect(size()).toBe(after);
  });
});

it.runIf(asRoot)("WORKER_LEFTOVERS=keep lets a server that was left behind live on, an abort still ends everything", async () => {
  const relay = await startRelay(1);
  const worker = startWorkerProcess(relay, { WORKER_LEFTOVERS: "keep", SANDBOX_EXEC_USER: "1001", SANDBOX_CWD: "/tmp" });
  const peer = await relay.attached();
  await worker.process.line(/"isolation":"user"/);
  const tag = `4${process.pid}.5`;
  const a = await peer.exec({ command: `nohup setsid sleep ${tag} >/dev/null 2>&1 & echo $!` }).done();
  expect(a.end).toMatchObject({ exitCode: 0, kill: undefined });
  const left = alive(`sleep\0${tag}`);
  expect(left).toHaveLength(1);
  process.kill(left[0]!, "SIGKILL");
});
