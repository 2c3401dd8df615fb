import pino, { type DestinationStream, type Logger } from "pino";

export type { Logger };

const levels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

/** JSON lines on stdout. Fields that could carry a secret are removed whatever object they arrive in. */
export function createLogger(program: string, level = process.env.LOG_LEVEL, destination?: DestinationStream): Logger {
  const options: pino.LoggerOptions = {
    name: program,
    level: level && levels.includes(level) ? level : "info",
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: {
      paths: ["token", "authorization", "apiKey", "password", "*.token", "*.authorization", "*.apiKey", "*.password", "*.stdin", "stdin"],
      censor: "[redacted]",
    },
    mixin: () => ({ program }),
  };
  // Synchronous: the last line before a crash is the one that matters most.
  return pino(options, destination ?? pino.destination({ fd: 1, sync: true }));
}
