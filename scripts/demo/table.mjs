// Reads `pulumi stack output --json` on stdin and prints the verdict table, the evidence and the next commands.
// Exit code: 0 the proof passed, 1 it did not.
import { readFileSync } from "node:fs";

/** Fixed-width columns; a cell longer than its column's limit is cut with an ellipsis. */
export function columns(rows, limits) {
  const cut = (s, n) => (s.length > n ? `${s.slice(0, n - 1)}…` : s);
  const cells = rows.map((r) => r.map((c, i) => cut(String(c ?? "").replace(/\s+/g, " "), limits[i] ?? 60)));
  const widths = cells[0].map((_, i) => Math.max(...cells.map((r) => r[i].length)));
  return cells.map((r) => r.map((c, i) => c.padEnd(widths[i])).join("  ").trimEnd());
}

export function render(out) {
  const lines = [];
  const verdicts = Array.isArray(out.verdicts) ? out.verdicts : [];
  const evidence = Array.isArray(out.evidence) ? out.evidence : [];
  if (verdicts.length) {
    lines.push(`verdicts (model: ${typeof out.model === "string" ? out.model : JSON.stringify(out.model)})`);
    const sandbox = (s) => (s && typeof s === "object" ? `${s.kind} ${s.name}` : (s ?? ""));
    lines.push(...columns([["arm", "pattern", "expected", "verdict", "sandbox", "ms", "reason"], ...verdicts.map((v) => [v.arm, v.pattern, v.expected, v.verdict, sandbox(v.sandbox), v.elapsedMs, v.reason])], [10, 24, 9, 9, 36, 7, 76]).map((l) => `  ${l}`));
  }
  if (evidence.length) {
    lines.push("evidence");
    lines.push(...columns(evidence.map((e) => [e.ok ? "ok" : "FAIL", e.check, e.ok ? e.seen : `expected ${e.expected}; seen ${e.seen}`]), [4, 40, 110]).map((l) => `  ${l}`));
  }
  lines.push(`proof: ${out.proof ?? "has not run"}   transport: ${out.transport ?? "?"}   tunnel: ${out.tunnel?.path ?? out.tunnel ?? "?"}`);
  const next = Array.isArray(out.next) ? out.next : [];
  if (next.length) lines.push("next", ...next.map((n) => `  ${n}`));
  return lines.join("\n");
}

if (process.argv[1] && import.meta.url === new URL(`file://${process.argv[1]}`).href) {
  let out;
  try {
    out = JSON.parse(readFileSync(0, "utf8"));
  } catch (e) {
    console.error(`table: stdin is not the stack's outputs as JSON (${e.message}). Try: ./demo outputs`);
    process.exit(1);
  }
  console.log(render(out));
  process.exit(out.proof === "passed" ? 0 : 1);
}
