// How a program is started: arguments and environment of `node @pulumi/pulumi/cmd/run`. Pure.

export interface Run {
  runner: string;
  engine: string;
  monitor: string;
  organization: string;
  project: string;
  stack: string;
  rootDirectory: string;
  programDirectory: string;
  entryPoint: string;
  dryRun: boolean;
  parallel: number;
  args: readonly string[];
  config: ReadonlyMap<string, string>;
  secretKeys: readonly string[];
  /** `runtime.options` of Pulumi.yaml. */
  options: Readonly<Record<string, unknown>>;
}

/** Exit code by which the SDK says that the user has already been told what is wrong. */
export const TOLD_THE_USER = 32;

const SERVED_OPTIONS = ["typescript", "nodeargs", "packagemanager"];

/** What is wrong with `runtime.options`, or undefined. */
export function optionsProblem(options: Readonly<Record<string, unknown>>): string | undefined {
  const unknown = Object.keys(options).find((key) => !SERVED_OPTIONS.includes(key));
  if (unknown) return `language host stand-in: runtime option '${unknown}' of Pulumi.yaml is not supported by the lab stand-in (${SERVED_OPTIONS.join(", ")} are); use the genuine language host`;
  if (options.packagemanager !== undefined && options.packagemanager !== "npm") return `language host stand-in: package manager '${String(options.packagemanager)}' is not supported by the lab stand-in (npm is); use the genuine language host`;
  return undefined;
}

export function commandLine(run: Run): string[] {
  const given: [name: string, value: string][] = [
    ["monitor", run.monitor],
    ["engine", run.engine],
    ["organization", run.organization],
    ["project", run.project],
    ["root-directory", run.rootDirectory],
    ["stack", run.stack],
    ["pwd", run.programDirectory],
  ];
  return [
    ...String(run.options.nodeargs ?? "").split(/\s+/).filter(Boolean),
    run.runner,
    ...given.flatMap(([name, value]) => (value ? [`--${name}`, value] : [])),
    ...(run.dryRun ? ["--dry-run"] : []),
    "--parallel",
    String(run.parallel),
    run.entryPoint || ".",
    ...run.args,
  ];
}

/** Configuration travels in the environment, where no other user's `ps` sees it. */
export function environment(run: Run): Record<string, string> {
  const config = Object.fromEntries([...run.config].map(([key, value]) => [oldKey(key), value]));
  return {
    PULUMI_CONFIG: JSON.stringify(config),
    PULUMI_CONFIG_SECRET_KEYS: JSON.stringify(run.secretKeys),
    ...(run.options.typescript === false ? {} : { PULUMI_NODEJS_TYPESCRIPT: "true" }),
  };
}

// The SDK reads `namespace:config:name`, the spelling of Pulumi's first years, best.
function oldKey(key: string): string {
  const colon = key.indexOf(":");
  return colon < 0 || key.startsWith("config:", colon + 1) ? key : `${key.slice(0, colon)}:config:${key.slice(colon + 1)}`;
}

/** What a program's end means to Pulumi. */
export function outcome(code: number | null, signal: string | null): { error: string; bail: boolean } {
  if (code === 0) return { error: "", bail: false };
  if (code === TOLD_THE_USER) return { error: "", bail: true };
  return { error: signal ? `Program was ended by ${signal}` : `Program exited with non-zero exit code: ${code}`, bail: false };
}
