// command:local:Command.
import { randomBytes } from "node:crypto";
import { diffProps, missing } from "../provider/diff";
import { UserError } from "../provider/errors";
import type { Call, Resource } from "../provider/plugin";
import { checkInputs, type Fields } from "../provider/schema";
import { UNKNOWN, holdsSecret, revealProps, secret, secretTexts, withoutSecrets, type Props, type Value } from "../provider/values";
import { runJob, type Ended } from "./process";

export const COMMAND = "command:local:Command";

export const COMMAND_FIELDS: Fields = {
  create: { type: "string" },
  update: { type: "string" },
  delete: { type: "string" },
  stdin: { type: "string" },
  environment: { type: "map" },
  dir: { type: "string" },
  interpreter: { type: "list" },
  triggers: { type: "list", of: { type: "any" } },
  logging: { type: "string", pattern: /^(stdout|stderr|stdoutAndStderr|none)$/ },
  addPreviousOutputInEnv: { type: "bool" },
};

export class LocalCommand implements Resource {
  check(_olds: Props, news: Props, name: string): ReturnType<Resource["check"]> {
    const { failures } = checkInputs(COMMAND_FIELDS, {}, revealProps(news), { plugin: "command", type: COMMAND, name });
    // the inputs themselves, for their marks of secrets
    return { inputs: Object.fromEntries(Object.entries(news).filter(([, value]) => value !== null)), failures };
  }

  diff(olds: Props, news: Props): ReturnType<Resource["diff"]> {
    const changes = diffProps(COMMAND_FIELDS, revealProps(olds), revealProps(news), missing);
    // The first and the last triggers; for a change among them it is the SDK that asks for a replacement.
    return { changes: changes.map((change) => (change.path === "triggers" ? { ...change, replace: true } : change)), deleteFirst: false };
  }

  plan(inputs: Props): Props {
    return outputs(inputs, UNKNOWN, UNKNOWN);
  }

  async create(inputs: Props, call: Call): Promise<{ id: string; outputs: Props }> {
    const id = `${call.name}${randomBytes(4).toString("hex")}`;
    return { id, outputs: await run(inputs.create, inputs, {}, call) };
  }

  read(id: string, state: Props): Promise<{ id: string; outputs: Props }> {
    return Promise.resolve({ id, outputs: state });
  }

  async update(_id: string, olds: Props, news: Props, call: Call): Promise<Props> {
    return run(news.update ?? news.create, news, olds, call);
  }

  async delete(_id: string, state: Props, call: Call): Promise<void> {
    await run(state.delete, state, state, call);
  }
}

/** What came from secrets is as secret as they are. (The genuine plugin marks only the inputs; a program names `stdout` in additionalSecretOutputs.) */
function outputs(inputs: Props, stdout: Value, stderr: Value): Props {
  const given = Object.fromEntries(Object.keys(COMMAND_FIELDS).flatMap((key) => (key in inputs ? [[key, inputs[key] ?? null]] : [])));
  const cover = holdsSecret(given) ? secret : (value: Value): Value => value;
  return { ...given, stdout: cover(stdout), stderr: cover(stderr) };
}

async function run(script: Value | undefined, inputs: Props, previous: Props, call: Call): Promise<Props> {
  const before = revealProps({ stdout: previous.stdout ?? "", stderr: previous.stderr ?? "" });
  if (script === undefined || script === null) return outputs(inputs, before.stdout ?? "", before.stderr ?? "");
  const plain = revealProps({ ...inputs, script });
  const command = String(plain.script);
  const secrets = secretTexts(inputs);
  const logged = String(plain.logging ?? "stdoutAndStderr");
  const ended = await runJob(
    {
      argv: [...interpreter(plain.interpreter), command],
      dir: plain.dir === undefined ? undefined : String(plain.dir),
      env: environment(plain, before),
      stdin: plain.stdin === undefined ? undefined : String(plain.stdin),
    },
    call.signal,
    (stream, line) => {
      if (logged === stream || logged === "stdoutAndStderr") call.status(withoutSecrets(line, secrets));
    },
  );
  if (ended.failure) throw new UserError(failureMessage(ended, command, secrets, call.signal));
  return outputs(inputs, trimmed(ended.stdout), trimmed(ended.stderr));
}

function interpreter(value: Value | undefined): string[] {
  return Array.isArray(value) && value.length ? value.map(String) : ["/bin/sh", "-c"];
}

function environment(plain: Props, before: Props): Record<string, string> {
  const env = Object.fromEntries(Object.entries((plain.environment ?? {}) as Props).map(([key, value]) => [key, String(value)]));
  if (plain.addPreviousOutputInEnv !== false) {
    if (before.stdout) env.PULUMI_COMMAND_STDOUT = String(before.stdout);
    if (before.stderr) env.PULUMI_COMMAND_STDERR = String(before.stderr);
  }
  return env;
}

const trimmed = (output: string): string => output.replace(/\n$/, "");

/** As the genuine plugin words it, but without the secrets that were in the inputs. */
function failureMessage(ended: Ended, command: string, secrets: readonly string[], signal: AbortSignal): string {
  const why = signal.aborted ? `${ended.failure}, and ended with all its processes` : ended.failure;
  return withoutSecrets(`${why}: running ${JSON.stringify(command)}:\n${ended.combined}`, secrets);
}
