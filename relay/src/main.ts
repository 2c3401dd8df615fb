import { createLogger, runProgram } from "@dialout/common";
import { setLogger } from "@grpc/grpc-js";
import { startRelay } from "./relay";
import { readSettings } from "./settings";

const log = createLogger("relay");
// The library's own lines would stand between ours as plain text on stderr.
setLogger({ error: (text: string) => log.debug({ library: "grpc" }, text), info: () => undefined, debug: () => undefined });
let drainMs = 0;

void runProgram(log, () => drainMs, async () => {
  const settings = readSettings(process.env);
  drainMs = settings.drainMs;
  return startRelay(settings, log);
});
