import * as grpc from "@grpc/grpc-js";
import { Empty } from "google-protobuf/google/protobuf/empty_pb";
import { Struct } from "google-protobuf/google/protobuf/struct_pb";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { LanguageRuntimeClient, LanguageRuntimeService } from "@pulumi/pulumi/proto/language_grpc_pb";
import * as messages from "@pulumi/pulumi/proto/language_pb";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { Children } from "./children";
import { languageHost } from "./host";

// The program's SDK is played by a script that writes down how it was started and then does as its configuration says.
const root = mkdtempSync(path.join(tmpdir(), "host-test-"));
const SDK = path.join(root, "node_modules/@pulumi/pulumi");
const SEEN = path.join(root, "seen.json");
const RUNNER = `
const fs = require("node:fs");
const config = JSON.parse(process.env.PULUMI_CONFIG);
fs.writeFileSync(${JSON.stringify(SEEN)}, JSON.stringify({ argv: process.argv.slice(2), cwd: process.cwd(), config, secrets: process.env.PULUMI_CONFIG_SECRET_KEYS, pid: process.pid }));
if (config["p:config:hang"]) setInterval(() => {}, 1000); else process.exit(Number(config["p:config:exit"] || 0));
`;

const server = new grpc.Server();
let client: LanguageRuntimeClient;
beforeAll(async () => {
  mkdirSync(path.join(SDK, "cmd/run"), { recursive: true });
  writeFileSync(path.join(SDK, "package.json"), '{"name":"@pulumi/pulumi","version":"3.0.0"}');
  writeFileSync(path.join(SDK, "cmd/run/index.js"), RUNNER);
  writeFileSync(path.join(root, "package.json"), '{"name":"p","version":"1.0.0","dependencies":{"@pulumi/pulumi":"3"}}');
  server.addService(LanguageRuntimeService, languageHost("engine:1", "3.1.0", new Children()));
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  client = new LanguageRuntimeClient(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
});
afterAll(() => {
  client.close();
  server.forceShutdown();
  rmSync(root, { recursive: true });
});

function info(directory = root, options: Record<string, string> = {}): messages.ProgramInfo {
  const program = new messages.ProgramInfo();
  program.setRootDirectory(directory);
  program.setProgramDirectory(directory);
  program.setEntryPoint(".");
  program.setOptions(Struct.fromJavaScript(options));
  return program;
}
function request(config: Record<string, string>, program = info()): messages.RunRequest {
  const run = new messages.RunRequest();
  run.setInfo(program);
  run.setProject("p");
  run.setStack("dev");
  run.setMonitorAddress("monitor:2");
  run.setParallel(4);
  run.setDryrun(true);
  run.setConfigsecretkeysList(["p:token"]);
  for (const [key, value] of Object.entries(config)) run.getConfigMap().set(key, value);
  return run;
}
const run = (config: Record<string, string>, program?: messages.ProgramInfo): Promise<messages.RunResponse.AsObject> =>
  new Promise((resolve, reject) => client.run(request(config, program), (error, response) => (error ? reject(error) : resolve(response.toObject()))));
const seen = (): { argv: string[]; cwd: string; config: Record<string, string>; secrets: string; pid: number } => JSON.parse(readFileSync(SEEN, "utf8"));

test("a program is run where it is, with its configuration and addresses", async () => {
  expect(await run({ "p:token": "t" })).toMatchObject({ error: "", bail: false });
  expect(seen()).toMatchObject({ cwd: root, config: { "p:config:token": "t" }, secrets: '["p:token"]' });
  expect(seen().argv.join(" ")).toContain("--monitor monitor:2 --engine engine:1 --project p");
  expect(seen().argv).toContain("--dry-run");
});

test("exit codes are told apart", async () => {
  expect(await run({ "p:exit": "32" })).toMatchObject({ error: "", bail: true });
  expect(await run({ "p:exit": "3" })).toMatchObject({ error: "Program exited with non-zero exit code: 3", bail: false });
});

test("without its packages a program is not run, and the user is told what to do", async () => {
  const bare = mkdtempSync(path.join(tmpdir(), "host-bare-"));
  expect((await run({}, info(bare))).error).toBe(`It looks like the Pulumi SDK has not been installed in ${bare}. Have you run npm ci?`);
  rmSync(bare, { recursive: true });
});

test("a runtime option that is not served is an error", async () => {
  expect((await run({}, info(root, { tsconfig: "x" }))).error).toContain("runtime option 'tsconfig'");
});

async function hanging(): Promise<number> {
  rmSync(SEEN, { force: true });
  return vi.waitFor(() => (existsSync(SEEN) ? seen().pid : Promise.reject(new Error("not started"))), { timeout: 10_000 });
}

test("a cancel ends the program", async () => {
  const started = hanging();
  const ended = run({ "p:hang": "1" });
  const pid = await started;
  await new Promise<void>((resolve, reject) => client.cancel(new Empty(), (error) => (error ? reject(error) : resolve())));
  expect((await ended).error).toBe("Program was ended by SIGTERM");
  expect(existsSync(`/proc/${pid}`)).toBe(false);
});

test("a call that is given up ends the program as well", async () => {
  const started = hanging();
  const call = client.run(request({ "p:hang": "1" }), () => undefined);
  const pid = await started;
  call.cancel();
  await vi.waitFor(() => expect(existsSync(`/proc/${pid}`)).toBe(false), { timeout: 10_000 });
});

test("packages, dependencies and the runtime are described", async () => {
  const needs = new messages.GetProgramDependenciesRequest();
  needs.setInfo(info());
  const dependencies = await new Promise<messages.GetProgramDependenciesResponse>((resolve, reject) => client.getProgramDependencies(needs, (error, response) => (error ? reject(error) : resolve(response))));
  expect(dependencies.getDependenciesList().map((one) => one.toObject())).toEqual([{ name: "@pulumi/pulumi", version: "3.0.0" }]);
  const about = await new Promise<messages.AboutResponse>((resolve, reject) => client.about(new messages.AboutRequest(), (error, response) => (error ? reject(error) : resolve(response))));
  expect([about.getExecutable(), about.getVersion(), about.getMetadataMap().get("packagemanager")]).toEqual([process.execPath, process.version, "npm"]);
});

test("what is not served says so", async () => {
  const error = await new Promise<grpc.ServiceError | null>((resolve) => client.generateProject(new messages.GenerateProjectRequest(), (reason) => resolve(reason)));
  expect(error?.code).toBe(grpc.status.UNIMPLEMENTED);
});

test("installing dependencies streams npm's words and reports its failure", async () => {
  const broken = mkdtempSync(path.join(tmpdir(), "host-npm-"));
  writeFileSync(path.join(broken, "package.json"), "{ this is no JSON");
  const install = new messages.InstallDependenciesRequest();
  install.setInfo(info(broken));
  let words = "";
  const error = await new Promise<grpc.ServiceError | undefined>((resolve) => {
    const stream = client.installDependencies(install);
    stream.on("data", (response: messages.InstallDependenciesResponse) => (words += Buffer.from(response.getStderr_asU8()).toString()));
    stream.on("error", resolve);
    stream.on("end", () => resolve(undefined));
  });
  expect(error?.details).toBe("npm install failed with exit code 1");
  expect(words).toMatch(/package\.json/);
  rmSync(broken, { recursive: true });
});
