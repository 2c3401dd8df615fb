import { createLogger, runProgram } from "@dialout/common";
import { startWorker } from "./worker";

export async function run(): Promise<void> {
  const log = createLogger("remote-worker");
  let drainMs = 0;
  await runProgram(log, () => drainMs, async () => {
    const worker = await startWorker(process.env, log);
    drainMs = worker.drainMs;
    return worker;
  });
}
