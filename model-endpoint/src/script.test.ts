import { describe, expect, it } from "vitest";
import type { Conversation, ToolCall } from "./conversation";
import { parseIntents } from "./intents";
import { parseLeafPrompt } from "./leaf-prompt";
import { decide, judge } from "./script";

const prompt = ['You are a code reviewer.', "", 'Item id: "i1"', 'File: "/etc/os-release"', 'Pattern: "Red Hat"', "", "Open the file with the read tool. Report once with submit_verdict."].join("\n");
const tools = ["read", "bash", "submit_verdict", "request_approval"];
const talk = (calls: ToolCall[] = [], over: Partial<Conversation> = {}): Conversation => ({ prompt, tools, calls, ...over });
const answered = (name: string, text: string, isError = false, input: Record<string, unknown> = {}): ToolCall => ({ id: "c", name, input, result: { text, isError } });

describe("parseLeafPrompt", () => {
  it("reads labelled JSON strings", () => {
    expect(parseLeafPrompt(prompt)).toEqual({ itemId: "i1", file: "/etc/os-release", pattern: "Red Hat", approval: false });
    expect(parseLeafPrompt(prompt.replace('"Red Hat"', JSON.stringify('a"b\n\\c')))?.pattern).toBe('a"b\n\\c');
  });
  it.each([
    ["- **Item ID:** i1\n- **File:** `/etc/os-release`\n- **Pattern:** Alpine"],
    ["item_id: i1\npath: /etc/os-release\npattern: Alpine"],
    ['Review item_id "i1". Open "/etc/os-release" with read; look for the pattern "Alpine".'],
  ])("reads looser forms: %j", (text) => {
    expect(parseLeafPrompt(text)).toMatchObject({ itemId: "i1", file: "/etc/os-release", pattern: "Alpine" });
  });
  it("is undefined when an element is missing", () => {
    expect(parseLeafPrompt("read /etc/os-release and report")).toBeUndefined();
  });
});

describe("a review", () => {
  it("opens the named file first", () => {
    expect(decide(talk())).toMatchObject({ kind: "call", name: "read", input: { path: "/etc/os-release" } });
  });
  it("flags what the tool result shows, quoting the line", () => {
    expect(decide(talk([answered("read", 'NAME="Red Hat Enterprise Linux"\n')]))).toMatchObject({
      name: "submit_verdict",
      input: { item_id: "i1", verdict: "FLAGGED", reason: '/etc/os-release contains "Red Hat" on line 1: NAME="Red Hat Enterprise Linux"' },
    });
  });
  it("clears the rest, quoting the line that names the system", () => {
    expect(decide(talk([answered("read", 'NAME="Alpine Linux"\nPRETTY_NAME="Alpine Linux v3.20"\n')]))).toMatchObject({
      input: { verdict: "CLEAR", reason: '/etc/os-release does not contain "Red Hat"; what the file says is: PRETTY_NAME="Alpine Linux v3.20"' },
    });
  });
  it("gives no verdict after a failed tool, even when the failure's text holds the pattern", () => {
    const move = decide(talk([answered("read", "Red Hat: permission denied", true)]));
    expect(move).toMatchObject({ kind: "text", text: expect.stringMatching(/no verdict/) as string });
  });
  it("reads on where a notice says so, and judges everything it read", () => {
    const first = answered("read", "a\nb\n\n[lines 1-2 of 4; use offset=3 to continue]");
    expect(decide(talk([first]))).toMatchObject({ name: "read", input: { path: "/etc/os-release", offset: 3 } });
    expect(decide(talk([first, answered("read", "Red Hat\nd\n")]))).toMatchObject({ input: { verdict: "FLAGGED", reason: expect.stringMatching(/line 3/) as string } });
  });
  it("asks for approval when only that is offered, and reports once it may", () => {
    const calls = [answered("read", "Red Hat\n")];
    expect(decide(talk(calls, { tools: ["read", "request_approval"] }))).toMatchObject({ name: "request_approval", input: { proposed_action: "Report FLAGGED for i1." } });
    expect(decide(talk(calls))).toMatchObject({ name: "submit_verdict" });
  });
  it("ends after its report, also a refused one", () => {
    expect(decide(talk([answered("submit_verdict", "ok", false, { verdict: "CLEAR" })])).kind).toBe("text");
    expect(decide(talk([answered("submit_verdict", "no", true)])).kind).toBe("text");
  });
  it("says that the file is empty", () => {
    expect(judge(parseLeafPrompt(prompt)!, "").reason).toMatch(/the file is empty/);
  });
});

describe("parseIntents", () => {
  it.each([
    ["run `cat /tmp/x` with bash and report", [{ tool: "bash", input: { command: "cat /tmp/x" } }]],
    ["Run the command `id` please", [{ tool: "bash", input: { command: "id" } }]],
    ["Execute this:\n```bash\necho a\necho b\n```", [{ tool: "bash", input: { command: "echo a\necho b" } }]],
    ["read /tmp/proof.txt and report.", [{ tool: "read", input: { path: "/tmp/proof.txt" } }]],
    ["Read the file `/tmp/a b` now", [{ tool: "read", input: { path: "/tmp/a b" } }]],
    ["List /workspace, then grep `x.*y` in /workspace/src.", [{ tool: "ls", input: { path: "/workspace" } }, { tool: "grep", input: { pattern: "x.*y", path: "/workspace/src" } }]],
    ["write `hi` to /tmp/h and read /tmp/h", [{ tool: "write", input: { path: "/tmp/h", content: "hi" } }, { tool: "read", input: { path: "/tmp/h" } }]],
    ["replace `a` with `b` in /tmp/h", [{ tool: "edit", input: { path: "/tmp/h", edits: [{ oldText: "a", newText: "b" }] } }]],
    ["find `*.ts` under /src", [{ tool: "find", input: { pattern: "*.ts", path: "/src" } }]],
    ["What does /etc/hostname say?", [{ tool: "read", input: { path: "/etc/hostname" } }]],
    ["Which operating system is this?", [{ tool: "read", input: { path: "/etc/os-release" } }]],
    ["hello", []],
  ])("%s", (text, intents) => expect(parseIntents(text)).toEqual(intents));
});

describe("a prompt", () => {
  const two = { prompt: "run `a` and run `b`", tools: ["bash"] };
  it("does one thing after the other and answers with the outputs", () => {
    expect(decide(talk([], two))).toMatchObject({ input: { command: "a" } });
    expect(decide(talk([answered("bash", "A")], two))).toMatchObject({ input: { command: "b" } });
    expect(decide(talk([answered("bash", "A"), answered("bash", "B")], two))).toEqual({ kind: "text", text: "A\nB" });
  });
  it("stops at the first failure and says so", () => {
    expect(decide(talk([answered("bash", "boom", true)], two))).toEqual({ kind: "text", text: "The bash call failed: boom" });
  });
  it("says what it is when it does not understand", () => {
    expect(decide(talk([], { prompt: "hello" }))).toMatchObject({ kind: "text", text: expect.stringMatching(/a script, not a language model/) as string });
  });
  it("does not pretend to have a tool", () => {
    expect(decide(talk([], { ...two, tools: [] }))).toMatchObject({ kind: "text" });
  });
});
