import { createLogger, runProgram } from "@dialout/common";
import { startWorker } from "./worker";

const log = createLogger("remote-worker");
let drainMs = 0;

void runProgram(log, () => drainMs, async () => {
  const worker = await startWorker(process.env, log);
  drainMs = worker.drainMs;
  return worker;
});
