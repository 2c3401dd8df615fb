import { createLogger, runProgram } from "@dialout/common";
import { startRelay } from "./relay";
import { readSettings } from "./settings";

const log = createLogger("relay");
let drainMs = 0;

void runProgram(log, () => drainMs, async () => {
  const settings = readSettings(process.env);
  drainMs = settings.drainMs;
  return startRelay(settings, log);
});
