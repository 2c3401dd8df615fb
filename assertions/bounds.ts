import { describe, wrong, type Finding } from "./evidence";

/** Rejects with `what` when `work` takes longer than `ms`; leaves no timer behind. `work` itself goes on unobserved. */
export async function within<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: no answer within ${ms / 1000} s`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Looks again and again while there are problems, for at most `ms`; the last finding counts. A look that throws has found a problem. */
export async function patiently(ms: number, look: () => Promise<Finding>): Promise<Finding> {
  const end = performance.now() + ms;
  for (;;) {
    const found = await look().catch((e: unknown) => wrong("no answer", describe(e)));
    if (found.problems.length === 0 || performance.now() >= end) return found;
    await new Promise((r) => setTimeout(r, 500));
  }
}

/** Asks until the answer is yes; rejects with `what` after `ms`, or with what the last question died of. */
export async function until(what: string, ms: number, yes: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + ms;
  let last: unknown;
  for (;;) {
    try {
      if (await yes()) return;
      last = undefined;
    } catch (e) {
      last = e;
    }
    if (Date.now() > end) throw new Error(`not within ${ms / 1000} s: ${what}${last ? ` (${(last as Error).message})` : ""}`);
    await new Promise((r) => setTimeout(r, 200));
  }
}
