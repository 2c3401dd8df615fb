import { expect, test } from "vitest";
import { commandLine, environment, optionsProblem, outcome, type Run } from "./command-line";

const run: Run = {
  runner: "/sdk/cmd/run/index.js", engine: "127.0.0.1:1", monitor: "127.0.0.1:2", organization: "org", project: "p", stack: "dev", rootDirectory: "/root", programDirectory: "/root/p", entryPoint: ".",
  dryRun: false, parallel: 8, args: [], config: new Map(), secretKeys: [], options: {},
};

test("a program's command line", () => {
  expect(commandLine(run)).toEqual([
    "/sdk/cmd/run/index.js", "--monitor", "127.0.0.1:2", "--engine", "127.0.0.1:1", "--organization", "org", "--project", "p", "--root-directory", "/root", "--stack", "dev", "--pwd", "/root/p", "--parallel", "8", ".",
  ]);
});

test("a preview, options of node, arguments, nothing said twice", () => {
  const line = commandLine({ ...run, dryRun: true, organization: "", entryPoint: "", args: ["a b"], options: { nodeargs: " --trace-warnings  --max-old-space-size=1 " } });
  expect(line.slice(0, 3)).toEqual(["--trace-warnings", "--max-old-space-size=1", "/sdk/cmd/run/index.js"]);
  expect(line).not.toContain("--organization");
  expect(line.slice(-5)).toEqual(["--dry-run", "--parallel", "8", ".", "a b"]);
});

test("configuration goes through the environment, never the command line", () => {
  const secret = { ...run, config: new Map([["p:token", "s3cr3t"], ["aws:config:region", "x"], ["odd", "y"]]), secretKeys: ["p:token"] };
  expect(commandLine(secret).join(" ")).not.toContain("s3cr3t");
  expect(environment(secret)).toEqual({
    PULUMI_CONFIG: '{"p:config:token":"s3cr3t","aws:config:region":"x","odd":"y"}', PULUMI_CONFIG_SECRET_KEYS: '["p:token"]', PULUMI_NODEJS_TYPESCRIPT: "true",
  });
  expect(environment({ ...run, options: { typescript: false } })).not.toHaveProperty("PULUMI_NODEJS_TYPESCRIPT");
});

test("options that are not served are refused by name", () => {
  expect(optionsProblem({ typescript: true, nodeargs: "", packagemanager: "npm" })).toBeUndefined();
  expect(optionsProblem({ tsconfig: "x" })).toContain("runtime option 'tsconfig' of Pulumi.yaml is not supported by the lab stand-in");
  expect(optionsProblem({ packagemanager: "bun" })).toContain("package manager 'bun'");
});

test.each([
  [0, null, { error: "", bail: false }],
  [32, null, { error: "", bail: true }],
  [1, null, { error: "Program exited with non-zero exit code: 1", bail: false }],
  [null, "SIGKILL", { error: "Program was ended by SIGKILL", bail: false }],
])("exit code %s, signal %s", (code, signal, expected) => expect(outcome(code, signal)).toEqual(expected));
