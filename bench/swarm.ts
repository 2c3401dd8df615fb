// Many workers in one process: argv = address, count. Each answers a command `hold:<ms>` after that time, and anything else at once.
import { End, SandboxWorkerClient, type ServerFrame, type WorkerFrame } from "@dialout/proto";
import { ChannelCredentials, Metadata } from "@grpc/grpc-js";

const [addr, count] = [process.argv[2]!, Number(process.argv[3])];
const metadata = new Metadata();
metadata.set("authorization", `Bearer ${process.env.SANDBOX_TOKEN}`);
let attached = 0;
for (let i = 0; i < count; i++) {
  const client = new SandboxWorkerClient(addr, ChannelCredentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  const stream = client.attach(metadata);
  const send = (msg: WorkerFrame["msg"]) => stream.write({ msg });
  const end = (reqId: bigint) => send({ $case: "end", value: End.create({ reqId, exitCode: 0 }) });
  stream.on("data", (f: ServerFrame) => {
    if (f.msg?.$case === "welcome") {
      if (++attached === count) console.log("all attached");
      setInterval(() => send({ $case: "heartbeat", value: {} }), f.msg.value.heartbeatMs);
    } else if (f.msg?.$case === "exec") {
      const { reqId, command } = f.msg.value;
      const hold = /^hold:(\d+)$/.exec(command);
      if (hold) setTimeout(() => end(reqId), Number(hold[1]));
      else end(reqId);
    }
  });
  stream.on("error", (e) => {
    console.error(`worker ${i}: ${e.message}`);
    process.exit(1);
  });
  send({ $case: "hello", value: { sandboxId: `swarm-${i}`, labels: {}, capabilities: [], image: "", arch: "", capacityMax: 8, trust: "", protocol: 1, instanceId: `i${i}`, journalId: `j${i}` } });
}
