/** One thing that was checked. `seen` of a check that never came to its turn starts with "not run". */
export interface Evidence {
  check: string;
  expected: string;
  seen: string;
  ok: boolean;
}

/** One leaf as a row of the verdict table. `sandbox` is `kind/name` as the harness reported it, or "none". */
export interface VerdictRow {
  arm: string;
  pattern: string;
  expected: string;
  verdict: string;
  reason: string;
  sandbox: string;
  elapsedMs: number;
}

export interface Outcome {
  passed: boolean;
  /** One sentence when all is well; otherwise which check, what was expected, what was seen, what to type next. */
  message: string;
  verdicts: VerdictRow[];
  evidence: Evidence[];
}

/** What a check found: what it saw, and what is wrong with it (nothing = fine). */
export interface Finding {
  seen: string;
  problems: readonly string[];
}

export const fine = (seen: string): Finding => ({ seen, problems: [] });
export const wrong = (seen: string, ...problems: string[]): Finding => ({ seen, problems: problems.length ? problems : ["it is not as expected"] });

export interface Planned {
  /** Stable name, kebab-case. */
  check: string;
  /** What the user types next when this check fails. */
  next: string;
}

/** Thrown by `Ledger.must`: what follows would prove nothing. */
export class Stop extends Error {
  override readonly name = "Stop";
}

/** The evidence in the order it was gathered. Only checks of the plan may be entered, each once. */
export class Ledger {
  readonly entries: Evidence[] = [];

  constructor(
    private readonly plan: readonly Planned[],
    private readonly redact: (text: string) => string = (t) => t,
    private readonly progress: (check: string) => void = () => {},
  ) {}

  /** Runs one check. A check that throws has failed: its error is what was seen. Returns whether it was fine. */
  async check(name: string, expected: string, look: () => Promise<Finding> | Finding): Promise<boolean> {
    if (!this.plan.some((p) => p.check === name)) throw new Error(`'${name}' is not a planned check`);
    if (this.entries.some((e) => e.check === name)) throw new Error(`'${name}' was checked twice`);
    this.progress(name);
    let found: Finding;
    try {
      found = await look();
    } catch (e) {
      found = wrong("no answer", describe(e));
    }
    const ok = found.problems.length === 0;
    const seen = ok ? found.seen : `${found.seen} (${found.problems.join("; ")})`;
    this.entries.push({ check: name, expected: clean(this.redact(expected)), seen: clean(this.redact(seen)), ok });
    return ok;
  }

  /** Like `check`, for what everything after it rests on. */
  async must(name: string, expected: string, look: () => Promise<Finding> | Finding): Promise<void> {
    if (!(await this.check(name, expected, look))) throw new Stop(name);
  }

  /** Closes the books: planned checks without an entry are entered as not run, which is a failure as well. */
  close(verdicts: VerdictRow[]): Outcome {
    const failed = this.entries.find((e) => !e.ok);
    const because = failed ? `not run: '${failed.check}' failed before it` : "not run";
    for (const { check } of this.plan) {
      if (!this.entries.some((e) => e.check === check)) this.entries.push({ check, expected: "to be checked", seen: because, ok: false });
    }
    const order = this.plan.map((p) => p.check);
    this.entries.sort((a, b) => order.indexOf(a.check) - order.indexOf(b.check));
    const bad = this.entries.filter((e) => !e.ok);
    const shown = verdicts.map((v) => ({ ...v, reason: clean(this.redact(v.reason)) }));
    return { passed: bad.length === 0, message: this.summary(bad), verdicts: shown, evidence: this.entries };
  }

  private summary(bad: Evidence[]): string {
    const first = bad[0];
    if (!first) return `all ${this.entries.length} checks passed`;
    const others = bad.slice(1).filter((e) => !e.seen.startsWith("not run")).map((e) => e.check);
    const notRun = bad.filter((e) => e.seen.startsWith("not run")).length;
    const also = [others.length ? `also failed: ${others.join(", ")}` : "", notRun ? `${notRun} later checks were not run` : ""].filter(Boolean).join("; ");
    const next = this.plan.find((p) => p.check === first.check)?.next ?? "./demo doctor";
    return `check '${first.check}' failed: expected ${first.expected}; seen: ${first.seen}.${also ? ` (${also})` : ""} Next: ${next}`;
  }
}

/** The message of whatever was thrown, with the causes that say more than "fetch failed" does. */
export function describe(e: unknown): string {
  if (!(e instanceof Error)) return String(e);
  const inner = e instanceof AggregateError ? e.errors[0] : e.cause;
  const text = e.message || (e as NodeJS.ErrnoException).code || e.name;
  return inner instanceof Error && inner.message && !text.includes(inner.message) ? `${text}: ${describe(inner)}` : text;
}

/** One line, without control characters, of bearable length: evidence is shown in a terminal and kept in the state. */
function clean(text: string): string {
  const line = text.replace(/[\p{Cc}\s]+/gu, " ").trim();
  return line.length > 600 ? `${line.slice(0, 597)}...` : line;
}
