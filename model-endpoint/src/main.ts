import { closeServer, createLogger, listen, runProgram } from "@dialout/common";
import { MODEL_ID } from "./script";
import { createHandler } from "./server";
import { readSettings } from "./settings";

const log = createLogger("model-endpoint");

void runProgram(log, 10_000, async () => {
  const settings = readSettings(process.env);
  const { server, port } = await listen((q, s) => void createHandler(settings, log)(q, s), settings.host, settings.port);
  log.info({ port, model: MODEL_ID, keyRequired: settings.apiKey !== undefined }, `model-endpoint listening on :${port} (scripted, no language model)`);
  return { stop: (signal) => closeServer(server, signal) };
});
