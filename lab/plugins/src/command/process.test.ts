import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { UserError } from "../provider/errors";
import { runJob, type Job } from "./process";

const scratch = mkdtempSync(path.join(tmpdir(), "process-test-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const sh = (script: string, rest: Partial<Job> = {}): Job => ({ argv: ["/bin/sh", "-c", script], env: {}, ...rest });
const never = new AbortController().signal;
const ignore = (): void => undefined;

test("output, both streams and their order", async () => {
  const lines: string[] = [];
  const ended = await runJob(sh("echo a; echo b >&2; printf c"), never, (stream, line) => lines.push(`${stream} ${line}`));
  expect(ended).toMatchObject({ stdout: "a\nc", stderr: "b\n", failure: undefined });
  expect(lines.sort()).toEqual(["stderr b", "stdout a", "stdout c"]);
});

test("a line that comes in pieces is one line, letters of several bytes included", async () => {
  const lines: string[] = [];
  // é in two writes, with the other stream in between to force them apart
  await runJob(sh("printf 'a\\303'; sleep 0.05; printf '\\251b\\n'"), never, (_, line) => lines.push(line));
  expect(lines).toEqual(["aéb"]);
});

test("stdin, folder and environment", async () => {
  const ended = await runJob(sh("cat; pwd; echo $X", { stdin: "in\n", dir: scratch, env: { X: "y" } }), never, ignore);
  expect(ended.stdout).toBe(`in\n${scratch}\ny\n`);
});

test("input that nobody reads is no failure", async () => {
  expect((await runJob(sh("exit 0", { stdin: "x".repeat(1_000_000) }), never, ignore)).failure).toBeUndefined();
});

test.each<[string, Job, string]>([
  ["an exit code", sh("exit 4"), "exit status 4"],
  ["a signal", sh("kill -9 $$"), "signal: killed"],
  ["a missing folder", sh("true", { dir: "/absent" }), "chdir /absent: no such file or directory"],
  ["a missing program", { argv: ["/absent", "-c", "true"], env: {} }, "fork/exec /absent: no such file or directory"],
  ["a file that is no program", { argv: ["/etc/passwd"], env: {} }, "fork/exec /etc/passwd: permission denied"],
  ["an environment that is too large", sh("true", { env: { PULUMI_COMMAND_STDOUT: "x".repeat(200_000) } }), "fork/exec /bin/sh: argument list too long (the previous output is passed in the environment; set addPreviousOutputInEnv: false)"],
])("%s", async (_, job, failure) => {
  expect((await runJob(job, never, ignore)).failure).toBe(failure);
});

test("an abort ends what the command started, and says why", async () => {
  const controller = new AbortController();
  const running = runJob(sh("(trap '' TERM HUP; sleep 60) & echo $!; wait"), controller.signal, () => controller.abort(new UserError("cancelled")));
  const ended = await running;
  expect(ended.failure).toBe("cancelled");
  const background = Number(ended.stdout);
  expect(background).toBeGreaterThan(1);
  await vi.waitFor(() => expect(existsSync(`/proc/${background}`)).toBe(false), { timeout: 5_000 });
}, 20_000);

test("an escapee that keeps the pipes does not keep us", async () => {
  const controller = new AbortController();
  const began = Date.now();
  // its pid is printed from within the new session, so that it has left the group by then
  const ended = await runJob(sh("setsid sh -c 'echo $$; exec sleep 60' & wait"), controller.signal, () => controller.abort(new UserError("cancelled")));
  expect(ended.failure).toBe("cancelled");
  expect(Date.now() - began).toBeLessThan(20_000);
  process.kill(Number(ended.stdout), "SIGKILL");
}, 40_000);

test("nothing starts once it is cancelled", async () => {
  const marker = path.join(scratch, "started");
  expect((await runJob(sh(`touch ${marker}`), AbortSignal.abort(new UserError("cancelled")), ignore)).failure).toBe("cancelled");
  expect(existsSync(marker)).toBe(false);
});
