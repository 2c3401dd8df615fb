// One child process: run to its end, or ended with everything it started.
import { spawn, type ChildProcess } from "node:child_process";
import { statSync } from "node:fs";
import { StringDecoder } from "node:string_decoder";

/** After a polite SIGTERM; enough for `kind create cluster` to take away what it began. */
export const KILL_AFTER_MS = 5_000;

export interface Job {
  /** Program and arguments. */
  argv: string[];
  dir?: string;
  /** Added to this process's environment. */
  env: Record<string, string>;
  stdin?: string;
}

export interface Ended {
  stdout: string;
  stderr: string;
  /** Both, in the order in which they came; for messages. */
  combined: string;
  /** "exit status 4", "signal: killed", "chdir /x: no such file or directory"; undefined when it went well. */
  failure?: string;
}

/** Never rejects. `onLine` gets each line as it comes. When `signal` is aborted the process group is ended, and the failure is its reason. */
export async function runJob(job: Job, signal: AbortSignal, onLine: (stream: "stdout" | "stderr", line: string) => void): Promise<Ended> {
  const output = { stdout: [] as Buffer[], stderr: [] as Buffer[], combined: [] as Buffer[] };
  const collected = (): Ended => ({
    stdout: Buffer.concat(output.stdout).toString(),
    stderr: Buffer.concat(output.stderr).toString(),
    combined: Buffer.concat(output.combined).toString(),
  });
  if (signal.aborted) return { ...collected(), failure: reasonOf(signal) };
  // Node reports a missing folder as if the program were missing
  if (job.dir !== undefined && !isDirectory(job.dir)) return { ...collected(), failure: `chdir ${job.dir}: no such file or directory` };

  const [program = ""] = job.argv;
  let child: ChildProcess;
  try {
    child = start(job);
  } catch (error) {
    // most failures come as an event, but for instance a too large environment is thrown
    return { ...collected(), failure: startFailure(program, error as NodeJS.ErrnoException) };
  }
  const ends = (["stdout", "stderr"] as const).map((name) => {
    const [push, end] = lineSplitter((line) => onLine(name, line));
    child[name]?.on("data", (chunk: Buffer) => {
      output[name].push(chunk);
      output.combined.push(chunk);
      push(chunk);
    });
    return end;
  });
  // a command that does not read its input is no failure
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(job.stdin);

  const stop = endGroup(child, signal);
  const failure = await new Promise<string | undefined>((resolve) => {
    child.once("error", (error) => resolve(startFailure(program, error)));
    child.once("close", (code, killedBy) => {
      if (signal.aborted) resolve(reasonOf(signal));
      else if (killedBy) resolve(`signal: ${SIGNALS[killedBy] ?? killedBy}`);
      else resolve(code === 0 ? undefined : `exit status ${code}`);
    });
  });
  stop();
  for (const end of ends) end();
  return { ...collected(), failure };
}

function start(job: Job): ChildProcess {
  const [program = "", ...args] = job.argv;
  return spawn(program, args, {
    cwd: job.dir,
    env: { ...process.env, ...job.env },
    stdio: [job.stdin ? "pipe" : "ignore", "pipe", "pipe"],
    // a process group of its own, so that an end reaches what the command started
    detached: true,
  });
}

function lineSplitter(onLine: (line: string) => void): [push: (chunk: Buffer) => void, end: () => void] {
  const decoder = new StringDecoder();
  let rest = "";
  const push = (chunk: Buffer): void => {
    const lines = (rest + decoder.write(chunk)).split(/\r?\n/);
    rest = lines.pop() ?? "";
    lines.forEach(onLine);
  };
  return [push, () => {
    if (rest) onLine(rest);
  }];
}

const SIGNALS: Partial<Record<NodeJS.Signals, string>> = {
  SIGKILL: "killed", SIGTERM: "terminated", SIGINT: "interrupt", SIGHUP: "hangup", SIGSEGV: "segmentation fault", SIGABRT: "aborted", SIGPIPE: "broken pipe",
};

function reasonOf(signal: AbortSignal): string {
  return signal.reason instanceof Error ? signal.reason.message : "cancelled";
}

function startFailure(program: string, error: NodeJS.ErrnoException): string {
  if (error.code === "ENOENT") return `fork/exec ${program}: no such file or directory`;
  if (error.code === "EACCES") return `fork/exec ${program}: permission denied`;
  if (error.code === "E2BIG") return `fork/exec ${program}: argument list too long (the previous output is passed in the environment; set addPreviousOutputInEnv: false)`;
  return `fork/exec ${program}: ${error.message}`;
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Ends the group on abort. Somebody who left the group but kept the pipes must not keep us waiting: the pipes are closed then. */
function endGroup(child: ChildProcess, signal: AbortSignal): () => void {
  let last: NodeJS.Timeout | undefined;
  const kill = (how: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, how);
    } catch {
      // the whole group is gone
    }
  };
  const onAbort = (): void => {
    kill("SIGTERM");
    const closePipes = (): void => {
      kill("SIGKILL");
      child.stdout?.destroy();
      child.stderr?.destroy();
    };
    last = setTimeout(() => {
      kill("SIGKILL");
      if (child.exitCode !== null || child.signalCode !== null) closePipes();
      else child.once("exit", closePipes);
    }, KILL_AFTER_MS);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  return () => {
    signal.removeEventListener("abort", onAbort);
    // what ignored the SIGTERM but let go of the pipes
    if (signal.aborted) kill("SIGKILL");
    clearTimeout(last);
  };
}
