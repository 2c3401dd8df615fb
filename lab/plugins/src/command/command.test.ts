import { expect, test } from "vitest";
import type { Call } from "../provider/plugin";
import { UNKNOWN, holdsSecret, reveal, secret, type Props } from "../provider/values";
import { LocalCommand } from "./command";

const command = new LocalCommand();
const call = (lines: string[] = []): Call => ({ urn: "urn", name: "mine", signal: new AbortController().signal, status: (line) => lines.push(line) });
const failure = (inputs: Props): Promise<string> => command.create(inputs, call()).then(() => "no failure", (error: Error) => error.message);

test("inputs keep their marks of secrets, and are checked beneath them", () => {
  const { inputs, failures } = command.check({}, { create: secret("true"), environment: secret({ A: 1 }), delete: null }, "mine");
  expect(inputs).toEqual({ create: secret("true"), environment: secret({ A: 1 }) });
  expect(failures.map(({ property }) => property)).toEqual(["environment.A"]);
});

test("what is not served is refused by name", () => {
  expect(command.check({}, { create: "true", assetPaths: ["*"] }, "mine").failures[0]?.reason).toBe(
    "command stand-in: property 'assetPaths' of command:local:Command is not supported by the lab stand-in; use the genuine plugin",
  );
});

test("an id of the name and eight digits, outputs without the last line break", async () => {
  const { id, outputs } = await command.create({ create: "printf 'a\\n\\n'; echo b >&2" }, call());
  expect(id).toMatch(/^mine[0-9a-f]{8}$/);
  expect(outputs).toEqual({ create: "printf 'a\\n\\n'; echo b >&2", stdout: "a\n", stderr: "b" });
});

test("outputs of a command with a secret are secret, and its inputs stay so", async () => {
  const { outputs } = await command.create({ create: "cat", stdin: secret("s3cr3t") }, call());
  expect(outputs.stdin).toEqual(secret("s3cr3t"));
  expect(outputs.stdout).toEqual(secret("s3cr3t"));
  expect(holdsSecret(outputs.stderr ?? null)).toBe(true);
  expect(command.plan({ create: secret("true") }).stdout).toEqual(secret(UNKNOWN));
});

test("without a secret a preview just does not know", () => {
  expect(command.plan({ create: "true" })).toEqual({ create: "true", stdout: UNKNOWN, stderr: UNKNOWN });
});

test("an error shows command and output without the secrets", async () => {
  const message = await failure({ create: "echo token is $T; echo again $T >&2; exit 4", environment: { T: secret("s3cr3t-value") } });
  expect(message).toContain('exit status 4: running "echo token is $T; echo again $T >&2; exit 4":');
  expect(message).toContain("token is [secret]");
  expect(message).toContain("again [secret]");
  expect(message).not.toContain("s3cr3t-value");
});

test("a secret in the command itself appears neither there nor in what it printed", async () => {
  expect(await failure({ create: secret("echo s3cr3t-value; exit 1") })).not.toContain("s3cr3t-value");
});

test.each<[string | undefined, string[]]>([
  [undefined, ["err", "out"]], ["stdoutAndStderr", ["err", "out"]], ["stdout", ["out"]], ["stderr", ["err"]], ["none", []],
])("logging: %s", async (logging, expected) => {
  const lines: string[] = [];
  await command.create({ create: "echo out; echo err >&2", ...(logging ? { logging } : {}) }, call(lines));
  expect(lines.sort()).toEqual(expected);
});

test("logged lines lose the secrets as well", async () => {
  const lines: string[] = [];
  await command.create({ create: "cat", stdin: secret("s3cr3t\n") }, call(lines));
  expect(lines).toEqual(["[secret]"]);
});

test("an update runs `update`, else `create`, with the previous output in its environment", async () => {
  const olds = { create: "x", stdout: secret("before"), stderr: "" };
  expect(reveal((await command.update("id", olds, { create: "no", update: "echo $PULUMI_COMMAND_STDOUT" }, call())).stdout ?? null)).toBe("before");
  expect((await command.update("id", olds, { create: "echo create" }, call())).stdout).toBe("create");
  expect((await command.update("id", olds, { update: 'echo "<$PULUMI_COMMAND_STDOUT>"', addPreviousOutputInEnv: false }, call())).stdout).toBe("<>");
});

test("with nothing to run the outputs stay", async () => {
  expect(await command.update("id", { stdout: "a", stderr: "b" }, { triggers: [1] }, call())).toEqual({ triggers: [1], stdout: "a", stderr: "b" });
});

test("a delete runs with the state's own settings", async () => {
  await expect(command.delete("id", { delete: 'test "$PULUMI_COMMAND_STDOUT$V" = ab', environment: { V: "b" }, stdout: "a" }, call())).resolves.toBeUndefined();
  await expect(command.delete("id", { delete: "exit 3" }, call())).rejects.toThrow("exit status 3");
  await expect(command.delete("id", { create: "exit 1" }, call())).resolves.toBeUndefined();
});

test("a secret that becomes known as the same value is no difference", () => {
  expect(command.diff({ create: "a", stdin: secret("x"), stdout: "o" }, { create: "a", stdin: "x" }).changes).toEqual([]);
  expect(command.diff({ create: "a" }, { create: UNKNOWN }).changes).toEqual([{ path: "create", kind: "update", replace: false }]);
});
