// Pure rules of the end-to-end test, apart from it so that they can be tested.

/** What is wrong with the stack outputs of a passed proof; an empty list when nothing is. */
export function checkOutputs(out) {
  const problems = [];
  if (out.proof !== "passed") problems.push(`output proof is ${JSON.stringify(out.proof)}`);
  const verdicts = Array.isArray(out.verdicts) ? out.verdicts : [];
  for (const arm of ["pods", "remote"]) {
    for (const label of ["FLAGGED", "CLEAR"]) {
      if (!verdicts.some((v) => v.arm === arm && v.verdict === label && v.expected === label)) problems.push(`no expected ${label} of arm ${arm}`);
    }
  }
  for (const v of verdicts) {
    if (v.verdict !== v.expected) problems.push(`${v.arm}/${v.pattern}: ${v.verdict}, expected ${v.expected}`);
    if (!v.reason) problems.push(`${v.arm}/${v.pattern}: no reason`);
  }
  const evidence = Array.isArray(out.evidence) ? out.evidence : [];
  if (evidence.length < 8) problems.push(`only ${evidence.length} pieces of evidence`);
  for (const e of evidence) if (!e.ok) problems.push(`evidence ${e.check}: expected ${e.expected}, seen ${e.seen}`);
  for (const name of ["transport", "tunnel", "model", "next"]) if (out[name] === undefined) problems.push(`no output ${name}`);
  return problems;
}

const ENV_ENTRIES = /SH_REMOTE_SANDBOX|SH_RELAY_ADDR|SH_RELAY_EXEC_TOKEN|KAGENTI_SANDBOX_POOL_SELECTOR/;

/** The env entries that a previewed change of the harness service adds, removes or alters. */
export function changedEnv(preview) {
  const names = new Set();
  for (const s of changes(preview)) {
    const entries = (state) => containerEnv(state).map((e) => [e.name, JSON.stringify(e)]);
    const before = new Map(entries(s.oldState)), after = new Map(entries(s.newState));
    for (const n of new Set([...before.keys(), ...after.keys()])) if (before.get(n) !== after.get(n)) names.add(n);
  }
  return [...names].sort();
}

const containerEnv = (state) => (state?.inputs?.spec?.template?.spec?.containers ?? []).flatMap((c) => c.env ?? []);
const changes = (preview) => (preview.steps ?? []).filter((s) => s.op !== "same" && !/^(read|refresh)/.test(s.op) && !s.urn.includes("pulumi:pulumi:Stack"));

/** What is wrong with the preview of a transport flip; an empty list when nothing is. */
export function checkFlip(preview) {
  const steps = changes(preview);
  const problems = [];
  if (steps.length !== 1) problems.push(`${steps.length} resources change, expected 1: ${steps.map((s) => `${s.op} ${s.urn.split("::").pop()}`).join(", ")}`);
  for (const s of steps) {
    if (s.op !== "update") problems.push(`${s.urn.split("::").pop()} would be ${s.op}, not update`);
    if (!s.urn.endsWith("::serverless-harness")) problems.push(`${s.urn.split("::").pop()} is not the harness service`);
    for (const p of Object.keys(s.detailedDiff ?? {})) if (!/spec\.template\.spec\.containers\[0\]\.env/.test(p)) problems.push(`changes ${p}, not only env`);
  }
  const names = changedEnv(preview);
  if (names.length === 0) problems.push("no env entry changes");
  for (const n of names) if (!ENV_ENTRIES.test(n)) problems.push(`env entry ${n} changes`);
  return problems;
}
