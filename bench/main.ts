// npm run bench [-- --json] [--quick] [--only latency,throughput,flood,load]
// For `kubectl exec` set BENCH_KUBECONFIG and BENCH_POD (BENCH_NAMESPACE, BENCH_CONTEXT, KUBECTL); for `docker exec` BENCH_CONTAINER.
import { GrpcRelayTransport } from "@dialout/transports";
import { firstByte, latency, type PodTarget } from "./latency";
import { flood, load } from "./load";
import { execToken, startRelay, startWorker } from "./setup";
import { table, type Spread } from "./stats";
import { throughput } from "./throughput";

const all = ["latency", "throughput", "flood", "load"];
const argv = process.argv.slice(2);
const json = argv.includes("--json"), quick = argv.includes("--quick");
const at = argv.indexOf("--only");
const only = at >= 0 ? (argv[at + 1] ?? "").split(",") : all;
const unknown = [...argv.filter((a, i) => a.startsWith("--") && !["--json", "--quick", "--only"].includes(a) && i !== at + 1), ...only.filter((o) => !all.includes(o))];
if (unknown.length) {
  console.error(`bench: unknown argument ${unknown.join(" ")}. Known: --json, --quick, --only ${all.join(",")}`);
  process.exit(3);
}
const progress = (text: string) => console.error(`[${Math.round(process.uptime())} s] ${text}`);
const ms = (n: number) => n.toFixed(2);
const ratio = (a?: number, b?: number) => (a === undefined || b === undefined || b === 0 ? null : a / b);
const env = process.env;
const pod: PodTarget | undefined = env.BENCH_KUBECONFIG && env.BENCH_POD
  ? { kubectl: env.KUBECTL ?? "kubectl", kubeconfig: env.BENCH_KUBECONFIG, context: env.BENCH_CONTEXT, namespace: env.BENCH_NAMESPACE ?? "default", pod: env.BENCH_POD }
  : undefined;

async function main() {
  const raw: Record<string, unknown> = {};
  const rows: string[][] = [["what", "p50 ms", "p95 ms", "p99 ms", "n"]];
  const lines: string[] = [];
  let lat: Record<string, Spread> = {}, tp: Awaited<ReturnType<typeof throughput>> = [];
  const row = (what: string, s: Spread) => rows.push([what, ms(s.p50), ms(s.p95), ms(s.p99), String(s.n)]);
  if (only.includes("latency") || only.includes("throughput")) {
    const bench = await startRelay();
    const worker = await startWorker(bench, "bench");
    const relay = new GrpcRelayTransport({ addr: `127.0.0.1:${bench.execPort}`, sandboxId: "bench", execToken });
    try {
      if (only.includes("latency")) {
        progress("latency of an empty command; next: time to first byte");
        raw.latency = lat = await latency(relay, quick ? 100 : 500, env.BENCH_CONTAINER, pod);
        for (const [name, s] of Object.entries(lat)) row(`exec true, ${name}`, s);
        const ttfb = await firstByte(relay, quick ? 10 : 50);
        raw.firstByte = ttfb;
        row("first byte, relay", ttfb);
      }
      if (only.includes("throughput")) {
        progress("throughput against a bare stream");
        raw.throughput = tp = await throughput(relay, quick ? [1, 10] : [1, 10, 100], quick ? 3 : 5);
        for (const t of tp) lines.push(`${t.mib} MiB stdout: bare gRPC ${t.bare.toFixed(0)} MiB/s, relay ${t.relay.toFixed(0)} MiB/s (${((100 * t.relay) / t.bare).toFixed(0)} %)`);
      }
    } finally {
      await relay.close();
      await worker.stop("SIGTERM");
      await bench.stop();
    }
  }
  let fl: Awaited<ReturnType<typeof flood>> | undefined, ld: Awaited<ReturnType<typeof load>> | undefined;
  if (only.includes("flood")) {
    progress("flood into a stalled reader");
    raw.flood = fl = await flood(1024, quick ? 5 : 15);
    row("exec true beside the flood", fl.otherExec);
    lines.push(`1 GiB flood, stalled reader: relay +${fl.relayMiB.toFixed(1)} MiB, worker +${fl.workerMiB.toFixed(1)} MiB`);
  }
  if (only.includes("load")) {
    progress("many workers and execs on one relay");
    raw.load = ld = await (quick ? load(200, 400, 200) : load(1000, 2000, 1000));
    row(`probe, ${ld.workers} idle workers`, ld.unloaded);
    row(`probe, ${ld.inFlight} execs in flight`, ld.loaded);
    lines.push(`memory per idle worker: ${ld.idleKiBPerWorker.toFixed(0)} KiB`);
  }
  const ratios = {
    relayVsLocalSpawnP50: ratio(lat.relay?.p50, lat["local spawn"]?.p50),
    kubectlExecVsRelayP50: ratio(lat["kubectl exec"]?.p50, lat.relay?.p50),
    throughputVsBareGrpc: tp.length ? Math.min(...tp.map((t) => t.relay / t.bare)) : null,
    floodGrowthMiBRelay: fl?.relayMiB ?? null,
    floodGrowthMiBWorker: fl?.workerMiB ?? null,
    loadedVsUnloadedP99: ratio(ld?.loaded.p99, ld?.unloaded.p99),
  };
  if (json) console.log(JSON.stringify({ ratios, raw }));
  else {
    console.log(table(rows));
    for (const l of lines) console.log(l);
    console.log(table([["ratio", "measured", "goal"], ...([["relayVsLocalSpawnP50", "<= 2"], ["kubectlExecVsRelayP50", ">= 30"], ["throughputVsBareGrpc", ">= 0.5"], ["floodGrowthMiBRelay", "<= 32"], ["floodGrowthMiBWorker", "<= 32"], ["loadedVsUnloadedP99", "<= 5"]] as const).map(([n, goal]) => [n, ratios[n]?.toFixed(2) ?? "not measured", goal])]));
  }
}

main().then(() => process.exit(0), (e) => {
  console.error(`bench: ${(e as Error).message}`);
  process.exit(1);
});
