/** The value below which `p` percent of the samples lie (nearest rank). Throws on an empty list. */
export function percentile(samples: readonly number[], p: number): number {
  if (samples.length === 0) throw new Error("no samples");
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil((p / 100) * sorted.length) - 1))]!;
}

export interface Spread { p50: number; p95: number; p99: number; n: number }

export function spread(samples: readonly number[]): Spread {
  return { p50: percentile(samples, 50), p95: percentile(samples, 95), p99: percentile(samples, 99), n: samples.length };
}

/** Milliseconds that each of `n` runs took, one after the other, after `warmup` uncounted ones. */
export async function time(n: number, warmup: number, run: () => Promise<unknown>): Promise<number[]> {
  const samples: number[] = [];
  for (let i = -warmup; i < n; i++) {
    const t = process.hrtime.bigint();
    await run();
    if (i >= 0) samples.push(Number(process.hrtime.bigint() - t) / 1e6);
  }
  return samples;
}

/** Rows as aligned text; the first row is the head. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((r) => (r[i] ?? "").length)));
  const line = (r: readonly string[]) => r.map((c, i) => (i === 0 ? c.padEnd(widths[i]!) : c.padStart(widths[i]!))).join("  ");
  return [line(rows[0]!), widths.map((w) => "-".repeat(w)).join("  "), ...rows.slice(1).map(line)].join("\n");
}
