import type { Logger } from "./log";
import { SettingError } from "./settings";

export interface Program {
  /** Ends the program in order: take no new work, let running work end, close. Must honour `signal`. */
  stop(signal: AbortSignal): Promise<void>;
}

/** Exit code of a refused setting (see also `./demo --help`). */
export const EXIT_USAGE = 3;

/**
 * Runs a program until SIGTERM or SIGINT: first signal drains within `drainMs`, second one leaves at once.
 * A SettingError prints one line and exits with code 3.
 */
export async function runProgram(log: Logger, drainMs: number | (() => number), start: () => Promise<Program>): Promise<void> {
  let program: Program;
  try {
    program = await start();
  } catch (e) {
    if (e instanceof SettingError) {
      process.stderr.write(`error: ${e.message}\n`);
      process.exit(EXIT_USAGE);
    }
    log.fatal({ err: e }, `cannot start: ${(e as Error).message}`);
    process.exit(1);
  }
  let stopping = false;
  const onSignal = (name: NodeJS.Signals) => {
    if (stopping) {
      log.warn({ signal: name }, "second signal, leaving at once");
      process.exit(130);
    }
    stopping = true;
    const ms = typeof drainMs === "function" ? drainMs() : drainMs;
    log.info({ signal: name, drainMs: ms }, "shutting down");
    const bound = AbortSignal.timeout(ms);
    program.stop(bound).then(
      () => process.exit(0),
      (e) => {
        log.error({ err: e }, "shutdown failed");
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}
