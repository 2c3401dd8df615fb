import { SettingError } from "@dialout/common";
import { json } from "node:stream/consumers";
import type { Outcome } from "./evidence";

const HELP = `usage: node assertions/dist/run.cjs prove|vignettes < INPUT.json

Runs the proof (or the longer demonstrations) against what is up, without Pulumi. Prints the outcome as JSON on stdout
({passed, message, verdicts, evidence}) and each check as it begins on stderr.

INPUT.json (see assertions/input.ts): kubeconfig (its text), context?, namespace, domain,
  arms {pods, remote, miswired}, ingress {namespace, service, port}, redis {service, port, password?},
  poolSelector, remoteSelector, worker {container, id}, relay? {service, execPort, secret},
  patterns? {pods, remote}, model {label, scripted}

exit codes: 0 all passed, 1 a check failed, 3 bad usage or input
`;

type Run = (kind: "prove" | "vignettes", input: unknown, progress: (check: string) => void) => Promise<Outcome>;

/** Sets the exit code and leaves the rest to the event loop: a handle left open would show as a process that does not end. */
export async function cli(args: readonly string[], run: Run): Promise<void> {
  const [kind, ...rest] = args;
  if (args.includes("--help") || args.includes("-h")) return void process.stdout.write(HELP);
  if ((kind !== "prove" && kind !== "vignettes") || rest.length) return refuse(`unknown arguments '${args.join(" ")}'\n${HELP}`);
  try {
    const input: unknown = await json(process.stdin);
    const outcome = await run(kind, input, (check) => process.stderr.write(`${kind}: ${check}\n`));
    process.stdout.write(`${JSON.stringify(outcome, null, 2)}\n`);
    process.exitCode = outcome.passed ? 0 : 1;
  } catch (e) {
    if (e instanceof SettingError) return refuse(e.message);
    if (e instanceof SyntaxError) return refuse(`the input on stdin is not JSON. Try: node assertions/dist/run.cjs ${kind} --help`);
    throw e;
  }
}

function refuse(message: string): void {
  process.stderr.write(`error: ${message}\n`);
  process.exitCode = 3;
}
