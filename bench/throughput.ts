import { ExecRequest, SandboxExecClient, type ExecEvent } from "@dialout/proto";
import { type GrpcRelayTransport } from "@dialout/transports";
import { ChannelCredentials } from "@grpc/grpc-js";
import { companion } from "./setup";
import { percentile } from "./stats";

const MiB = 1024 * 1024;

/** MiB per second of a bare stream and of the relay path for each size, the two in turn; medians of `rounds`. */
export async function throughput(relay: GrpcRelayTransport, sizes: number[], rounds: number): Promise<{ mib: number; bare: number; relay: number }[]> {
  const server = companion("bare-server.ts", []);
  try {
    const port = /:(\d+)/.exec(await server.line(/listening on/))![1];
    const client = new SandboxExecClient(`127.0.0.1:${port}`, ChannelCredentials.createInsecure());
    const rows = [];
    for (const mib of sizes) {
      const bare: number[] = [], viaRelay: number[] = [];
      for (let i = 0; i < rounds; i++) {
        bare.push(mib / (await seconds(() => bareStream(client, mib * MiB))));
        viaRelay.push(mib / (await seconds(() => relayStream(relay, mib * MiB))));
      }
      rows.push({ mib, bare: percentile(bare, 50), relay: percentile(viaRelay, 50) });
    }
    client.close();
    return rows;
  } finally {
    await server.stop();
  }
}

async function seconds(run: () => Promise<number>): Promise<number> {
  const t = process.hrtime.bigint();
  await run();
  return Number(process.hrtime.bigint() - t) / 1e9;
}

function bareStream(client: SandboxExecClient, bytes: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let got = 0;
    const call = client.exec(ExecRequest.create({ sandboxId: "x", exec: { reqId: 1n, command: String(bytes) } }));
    call.on("data", (e: ExecEvent) => {
      if (e.event?.$case === "chunk") got += e.event.value.data.length;
    });
    call.on("error", reject);
    call.on("end", () => (got === bytes ? resolve(got) : reject(new Error(`bare stream: ${got} of ${bytes} bytes`))));
  });
}

async function relayStream(relay: GrpcRelayTransport, bytes: number): Promise<number> {
  let got = 0;
  const result = await relay.exec(`head -c ${bytes} /dev/zero`, { outputCap: 2 * bytes, onData: (c) => { got += c.length; } });
  if (got !== bytes || result.exitCode !== 0) throw new Error(`relay: ${got} of ${bytes} bytes, exit ${result.exitCode}`);
  return got;
}
