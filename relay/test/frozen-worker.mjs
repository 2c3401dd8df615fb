// For tests: a worker in a process of its own, so that it can be stopped. Arguments: relay address, token, Hello frame in hex.
import grpc from "@grpc/grpc-js";

const [address, token, hello] = process.argv.slice(2);
const asIs = (b) => b;
const method = { path: "/sandbox.v1.SandboxWorker/Attach", requestStream: true, responseStream: true, requestSerialize: asIs, requestDeserialize: asIs, responseSerialize: asIs, responseDeserialize: asIs };
const Client = grpc.makeGenericClientConstructor({ attach: method }, "SandboxWorker");
const metadata = new grpc.Metadata();
metadata.set("authorization", `Bearer ${token}`);
const stream = new Client(address, grpc.credentials.createInsecure()).attach(metadata);
stream.on("data", () => undefined);
stream.on("error", (e) => console.log(`ended: ${e.code} ${e.details}`));
stream.on("end", () => console.log("end"));
stream.write(Buffer.from(hello, "hex"));
const heartbeat = Buffer.from([0x12, 0x00]);
if (process.env.HEARTBEAT) setInterval(() => stream.write(heartbeat), Number(process.env.HEARTBEAT));
console.log("started");
