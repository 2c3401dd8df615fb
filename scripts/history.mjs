// npm run test:history -- [--execs N] [--seed S]: the history test with its numbers as flags.
import { spawn } from "node:child_process";
import { parseArgs } from "node:util";

let values;
try {
  ({ values } = parseArgs({ options: { execs: { type: "string" }, seed: { type: "string" } } }));
  for (const [name, value] of Object.entries(values)) if (!/^\d{1,10}$/.test(value)) throw new Error(`--${name} ${value} must be a whole number`);
} catch (e) {
  console.error(`error: ${e.message}. Usage: npm run test:history -- [--execs N] [--seed S]`);
  process.exit(3);
}
const env = { ...process.env, ...(values.execs && { HISTORY_EXECS: values.execs }), ...(values.seed && { HISTORY_SEED: values.seed }) };
const child = spawn("npx", ["vitest", "run", "--project", "history"], { stdio: "inherit", env });
for (const s of ["SIGINT", "SIGTERM"]) process.on(s, () => child.kill(s));
child.on("exit", (code) => process.exit(code ?? 1));
