// Go's durations, as the docker provider writes them: "1m30s", "500ms", "0s".
const UNITS: Record<string, number> = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 };
export const DURATION = /^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$/;

/** Nanoseconds; NaN for what is no duration. */
export function parseDuration(text: string): number {
  if (!DURATION.test(text)) return NaN;
  return [...text.matchAll(/([0-9.]+)(ns|us|µs|ms|s|m|h)/g)].reduce((sum, [, amount, unit]) => sum + Number(amount) * (UNITS[unit ?? ""] ?? NaN), 0);
}

export function formatDuration(nanoseconds: number): string {
  if (nanoseconds === 0) return "0s";
  if (nanoseconds < 1e3) return `${nanoseconds}ns`;
  if (nanoseconds < 1e6) return `${nanoseconds / 1e3}µs`;
  if (nanoseconds < 1e9) return `${nanoseconds / 1e6}ms`;
  const hours = Math.floor(nanoseconds / 3600e9);
  const minutes = Math.floor((nanoseconds % 3600e9) / 60e9);
  const seconds = (nanoseconds % 60e9) / 1e9;
  return `${hours ? `${hours}h` : ""}${hours || minutes ? `${minutes}m` : ""}${seconds}s`;
}
