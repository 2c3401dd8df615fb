import { randomUUID } from "node:crypto";
import { SandboxExecClient, type ExecEvent } from "@dialout/proto";
import { ChannelCredentials, Metadata, type ClientReadableStream } from "@grpc/grpc-js";
import { delay } from "@dialout/common";
import { companion, execToken, rssMiB, startRelay, startWorker, workerToken } from "./setup";
import { spread, time, type Spread } from "./stats";

const auth = () => {
  const m = new Metadata();
  m.set("authorization", `Bearer ${execToken}`);
  return m;
};
let nextId = 1n;
const request = (sandboxId: string, command: string) => ({
  sandboxId,
  exec: { reqId: nextId++, command, stdin: Buffer.alloc(0), timeoutS: 0, streaming: true, execId: randomUUID(), journalId: "", delivery: 1, resumeStdout: 0n, resumeStderr: 0n, outputCap: 0n, window: 0n, graceS: 30, traceparent: "" },
});

function once(client: SandboxExecClient, sandboxId: string, command: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const call = client.exec(request(sandboxId, command), auth());
    call.on("data", (e: ExecEvent) => e.event?.$case === "error" && reject(new Error(e.event.value.message)));
    call.on("error", reject);
    call.on("end", resolve);
  });
}

export interface LoadResult { workers: number; inFlight: number; unloaded: Spread; loaded: Spread; idleKiBPerWorker: number }

/** Latency of an empty exec with nothing else going on, and with `inFlight` execs held open over `workers` workers. */
export async function load(workers: number, inFlight: number, probes: number): Promise<LoadResult> {
  const bench = await startRelay({ SH_RELAY_MAX_WORKERS: String(workers + 10), SH_RELAY_MAX_EXECS: String(inFlight * 2 + 100) });
  const before = rssMiB(bench.relay.pid);
  const swarm = companion("swarm.ts", [`127.0.0.1:${bench.attachPort}`, String(workers)], { SANDBOX_TOKEN: workerToken });
  const client = new SandboxExecClient(`127.0.0.1:${bench.execPort}`, ChannelCredentials.createInsecure());
  try {
    await swarm.line(/all attached/, 120_000);
    const idle = ((rssMiB(bench.relay.pid) - before) * 1024) / workers;
    const probe = () => once(client, `swarm-${Math.floor(Math.random() * workers)}`, "now");
    const unloaded = spread(await time(probes, 100, probe));
    let going = true;
    const holders = Array.from({ length: inFlight }, async (_, i) => {
      // Started over ten seconds, each held for ten: a steady stream of starts and ends, not one wave
      await delay((i / inFlight) * 10_000);
      while (going) await once(client, `swarm-${i % workers}`, "hold:10000");
    });
    await delay(10_500);
    const loaded = spread(await time(probes, 20, probe));
    going = false;
    await Promise.all(holders);
    return { workers, inFlight, unloaded, loaded, idleKiBPerWorker: idle };
  } finally {
    client.close();
    await swarm.stop();
    await bench.stop();
  }
}

export interface FloodResult { mib: number; relayMiB: number; workerMiB: number; otherExec: Spread }

/** Memory growth of relay and worker while a command floods a reader that takes nothing, and the latency of others beside it. */
export async function flood(mib: number, seconds: number): Promise<FloodResult> {
  const bench = await startRelay();
  const worker = await startWorker(bench, "flood");
  const client = new SandboxExecClient(`127.0.0.1:${bench.execPort}`, ChannelCredentials.createInsecure());
  let stalled: ClientReadableStream<ExecEvent> | undefined;
  try {
    // Long enough that what a process grows by when it starts to work is not taken for the flood's.
    await time(1_000, 0, () => once(client, "flood", "true"));
    const before = { relay: rssMiB(bench.relay.pid), worker: rssMiB(worker.pid) };
    stalled = client.exec(request("flood", `head -c ${mib * 1024 * 1024} /dev/zero`), auth());
    stalled.on("error", () => undefined);
    stalled.pause();
    const most = { relay: 0, worker: 0 };
    const latencies: number[] = [];
    for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
      latencies.push(...(await time(5, 0, () => once(client, "flood", "true"))));
      most.relay = Math.max(most.relay, rssMiB(bench.relay.pid) - before.relay);
      most.worker = Math.max(most.worker, rssMiB(worker.pid) - before.worker);
    }
    return { mib, relayMiB: most.relay, workerMiB: most.worker, otherExec: spread(latencies) };
  } finally {
    stalled?.cancel();
    client.close();
    await worker.stop("SIGTERM");
    await bench.stop();
  }
}
