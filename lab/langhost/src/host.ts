// The methods of the language runtime protocol.
import * as grpc from "@grpc/grpc-js";
import { Empty } from "google-protobuf/google/protobuf/empty_pb";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";
import * as messages from "@pulumi/pulumi/proto/language_pb";
import * as plugins from "@pulumi/pulumi/proto/plugin_pb";
import { Children, end } from "./children";
import { commandLine, environment, optionsProblem, outcome } from "./command-line";
import { programDependencies, requiredPlugins } from "./packages";

type Unary<Request, Response> = grpc.handleUnaryCall<Request, Response>;

/** @param engine address of the Pulumi engine, given to the program */
export function languageHost(engine: string, version: string, children: Children): grpc.UntypedServiceImplementation {
  const handshake: Unary<messages.LanguageHandshakeRequest, messages.LanguageHandshakeResponse> = (_call, answer) => answer(null, new messages.LanguageHandshakeResponse());

  const getPluginInfo: Unary<Empty, plugins.PluginInfo> = (_call, answer) => {
    const info = new plugins.PluginInfo();
    info.setVersion(version);
    answer(null, info);
  };

  const getRequiredPackages: Unary<messages.GetRequiredPackagesRequest, messages.GetRequiredPackagesResponse> = (call, answer) => {
    const response = new messages.GetRequiredPackagesResponse();
    response.setPackagesList(requiredPlugins(directoryOf(call.request.getInfo())).map((need) => {
      const dependency = new plugins.PackageDependency();
      dependency.setName(need.name);
      dependency.setKind("resource");
      dependency.setVersion(need.version);
      dependency.setServer(need.server);
      return dependency;
    }));
    answer(null, response);
  };

  const run: Unary<messages.RunRequest, messages.RunResponse> = (call, answer) => {
    const request = call.request;
    const respond = (error: string, bail = false): void => {
      const response = new messages.RunResponse();
      response.setError(error);
      response.setBail(bail);
      answer(null, response);
    };
    const directory = directoryOf(request.getInfo());
    const options = (request.getInfo()?.getOptions()?.toJavaScript() ?? {}) as Record<string, unknown>;
    const problem = optionsProblem(options);
    if (problem) return respond(problem);
    const runner = resolveIn(directory, "@pulumi/pulumi/cmd/run");
    if (!runner) return respond(`It looks like the Pulumi SDK has not been installed in ${directory}. Have you run npm ci?`);
    const asked = {
      runner,
      engine,
      options,
      monitor: request.getMonitorAddress(),
      organization: request.getOrganization(),
      project: request.getProject(),
      stack: request.getStack(),
      rootDirectory: request.getInfo()?.getRootDirectory() ?? "",
      programDirectory: directory,
      entryPoint: request.getInfo()?.getEntryPoint() ?? "",
      dryRun: request.getDryrun(),
      parallel: request.getParallel(),
      args: request.getArgsList(),
      config: new Map(request.getConfigMap().toObject(false) as [string, string][]),
      secretKeys: request.getConfigsecretkeysList(),
    };
    // stdout and stderr are Pulumi's: it shows each line as it comes
    children
      .run(process.execPath, commandLine(asked), { cwd: directory, env: { ...process.env, ...environment(asked) }, stdio: ["ignore", "inherit", "inherit"] }, (child) => {
        call.on("cancelled", () => end(child));
      })
      .then(({ code, signal }) => {
        const { error, bail } = outcome(code, signal);
        respond(error, bail);
      }, (error: Error) => respond(`Problem executing program: ${error.message}`));
  };

  const installDependencies = (call: grpc.ServerWritableStream<messages.InstallDependenciesRequest, messages.InstallDependenciesResponse>): void => {
    const send = (set: (response: messages.InstallDependenciesResponse) => void): void => {
      const response = new messages.InstallDependenciesResponse();
      set(response);
      call.write(response);
    };
    // grpc-js turns this event into the call's status; destroy() would leave the caller waiting
    const fail = (message: string): void => {
      call.emit("error", Object.assign(new Error(message), { code: grpc.status.UNKNOWN, details: message }));
    };
    const options = (call.request.getInfo()?.getOptions()?.toJavaScript() ?? {}) as Record<string, unknown>;
    const problem = optionsProblem(options);
    if (problem) return fail(problem);
    children
      .run("npm", ["install", "--loglevel=error"], { cwd: directoryOf(call.request.getInfo()), stdio: ["ignore", "pipe", "pipe"] }, (child) => {
        child.stdout?.on("data", (chunk: Buffer) => send((response) => response.setStdout(chunk)));
        child.stderr?.on("data", (chunk: Buffer) => send((response) => response.setStderr(chunk)));
        call.on("cancelled", () => end(child));
      })
      .then(({ code }) => (code === 0 ? call.end() : fail(`npm install failed with exit code ${code}`)), (error: Error) => fail(`npm could not be started: ${error.message}`));
  };

  const about: Unary<messages.AboutRequest, messages.AboutResponse> = (_call, answer) => {
    const response = new messages.AboutResponse();
    response.setExecutable(process.execPath);
    response.setVersion(process.version);
    response.getMetadataMap().set("packagemanager", "npm").set("packagemanagerVersion", npmVersion());
    answer(null, response);
  };

  const getProgramDependencies: Unary<messages.GetProgramDependenciesRequest, messages.GetProgramDependenciesResponse> = (call, answer) => {
    const response = new messages.GetProgramDependenciesResponse();
    response.setDependenciesList(programDependencies(directoryOf(call.request.getInfo())).map(({ name, version: installed }) => {
      const info = new messages.DependencyInfo();
      info.setName(name);
      info.setVersion(installed);
      return info;
    }));
    answer(null, response);
  };

  const runtimeOptionsPrompts: Unary<messages.RuntimeOptionsRequest, messages.RuntimeOptionsResponse> = (_call, answer) => answer(null, new messages.RuntimeOptionsResponse());

  const cancel: Unary<Empty, Empty> = (_call, answer) => {
    children.endAll();
    answer(null, new Empty());
  };

  // what is missing here (code generation, packing, plugins written in TypeScript) answers UNIMPLEMENTED
  return { handshake, getPluginInfo, getRequiredPackages, run, installDependencies, about, getProgramDependencies, runtimeOptionsPrompts, cancel } as unknown as grpc.UntypedServiceImplementation;
}

function directoryOf(info: messages.ProgramInfo | undefined): string {
  return info?.getProgramDirectory() || process.cwd();
}

function resolveIn(directory: string, module: string): string | undefined {
  try {
    return createRequire(path.join(directory, "package.json")).resolve(module);
  } catch {
    return undefined;
  }
}

function npmVersion(): string {
  try {
    return execFileSync("npm", ["--version"], { encoding: "utf8" }).trim();
  } catch {
    return "not found";
  }
}
