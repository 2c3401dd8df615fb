import { closeServer, createLogger, listen, runProgram } from "@dialout/common";
import { createRoutes } from "./http/routes";
import { LeafRunner } from "./leaf/runner";
import { createServices } from "./services";
import { readSettings } from "./settings";

// The client library writes hints for developers to stderr; what matters of them is in our own messages.
(globalThis as { AI_SDK_LOG_WARNINGS?: boolean }).AI_SDK_LOG_WARNINGS = false;

const log = createLogger("harness");
let drainMs = 0;
const FLUSH_MS = 1000;

void runProgram(log, () => drainMs, async () => {
  const settings = readSettings(process.env);
  drainMs = settings.drainMs;
  for (const warning of settings.warnings) log.warn(warning);
  const services = createServices(settings, log);
  const runner = new LeafRunner(services);
  const ending = new AbortController();
  const routes = createRoutes(services, runner, ending.signal);
  const { server, port } = await listen((request, response) => void routes(request, response), settings.host, settings.port);
  const { placement, pods, records } = settings.sandbox;
  log.info({ port, provider: settings.model.provider, placement: placement.kind, pods, records }, `harness listening on :${port}`);
  return {
    stop: async (signal) => {
      const cut = new AbortController();
      const closed = closeServer(server, cut.signal);
      await runner.drain(signal);
      const bound = new Promise<void>((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve(), { once: true })));
      await Promise.race([closed, bound]);
      ending.abort(new Error("the harness is shutting down"));
      // Callers that wait still get their answer; a connection kept alive for nothing does not hold the process.
      setTimeout(() => cut.abort(), FLUSH_MS).unref();
      await closed;
      services.store.close();
    },
  };
});
