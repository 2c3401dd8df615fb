import { expect, it } from "vitest";
import { hopProblems, type Asked } from "./hops";
import { readAnswer } from "./rules";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736", OTHER = TRACE.replaceAll("4", "5");
const leaf = (name: string, remote: boolean, traceId: unknown = TRACE, execs: unknown = [{ execId: "e1" }]): Asked =>
  ({ name, remote, answer: readAnswer({ status: 200, elapsedMs: 1, body: JSON.stringify({ status: "done", traceId, tools: [{ execs }] }) }) });
const line = (execId: string, trace: string) => JSON.stringify({ exec_id: execId, trace: `00-${trace}-00f067aa0ba902b7-01` });
const logs = (text: string) => ({ worker: text, relay: text });

it("believes a remote leaf whose commands both logs hold, among lines of anybody", () => {
  const noise = 'plain text\n{"torn":\n{"exec_id":7}\n{"msg":"hi"}\n';
  expect(hopProblems([leaf("own", true)], logs(noise + line("e1", TRACE)))).toEqual([]);
});

it.each<[string, Asked, string, RegExp]>([
  ["a command that only the harness knows", leaf("own", true), line("e2", TRACE), /own: the worker knows nothing of command "?e1/],
  ["a command of another trace", leaf("own", true), line("e1", OTHER), /under another trace/],
  ["one command of several", leaf("own", true, TRACE, [{ execId: "e1" }, { execId: "e2" }]), line("e1", TRACE), /knows nothing of command "?e2/],
  ["no trace", leaf("own", true, 7), line("e1", TRACE), /names no trace/],
  ["no commands", leaf("own", true, TRACE, "none"), line("e1", TRACE), /names no command/],
  ["a pod's command on the worker", leaf("pods", false), line("e1", OTHER), /ran on a pod/],
  ["a pod's trace on the worker", leaf("pods", false), line("e9", TRACE), /ran on a pod/],
])("notices %s", (_, asked, text, problem) => {
  expect(hopProblems([asked], logs(text)).join("; ")).toMatch(problem);
});

it("asks both hops", () => {
  const text = line("e1", TRACE);
  expect(hopProblems([leaf("own", true)], { worker: text, relay: "" })).toEqual([expect.stringContaining("the relay knows nothing")]);
  expect(hopProblems([leaf("own", true)], { worker: "", relay: text })).toEqual([expect.stringContaining("the worker knows nothing")]);
});
