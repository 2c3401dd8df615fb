// For tests only: a caller in a process of its own, so that it can be killed and frozen. Arguments: address, sandbox, command, grace in ms.
// Prints each line of the command's stdout as it comes, then one line of JSON.
import { GrpcRelayTransport } from "../relay";
import { EXEC_TOKEN } from "./world";

const [addr = "", sandboxId = "", command = "", graceMs = "30000"] = process.argv.slice(2);
const transport = new GrpcRelayTransport({ addr, sandboxId, execToken: EXEC_TOKEN, graceMs: Number(graceMs), keepaliveMs: 1_000 });
transport
  .exec(command, { timeout: 100, onData: (c, s) => void (s === "stdout" && process.stdout.write(c)) })
  .then(
    (r) => console.log(JSON.stringify({ exitCode: r.exitCode, stdout: r.stdout.toString(), deliveries: r.deliveries })),
    (e: Error & { code: string }) => console.log(JSON.stringify({ code: e.code, message: e.message })),
  )
  .finally(() => transport.close());
