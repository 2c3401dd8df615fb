import type { Conversation, Move, ToolCall } from "./conversation";
import { parseIntents } from "./intents";
import { parseLeafPrompt, type LeafTask } from "./leaf-prompt";

/** The id this endpoint reports as the model, whatever the caller asked for: nobody should take a script for a model. */
export const MODEL_ID = "scripted-1";

const say = (text: string): Move => ({ kind: "text", text });
const call = (name: string, input: Record<string, unknown>, text: string): Move => ({ kind: "call", name, input, text });

/** The script's next move. It knows nothing but the conversation: what a file holds, it learns from tool results alone. */
export function decide(conversation: Conversation): Move {
  const task = parseLeafPrompt(conversation.prompt);
  const review = task && (conversation.tools.includes("submit_verdict") || conversation.tools.includes("request_approval"));
  return review ? reviewMove(task, conversation) : promptMove(conversation);
}

function reviewMove(task: LeafTask, { tools, calls }: Conversation): Move {
  const last = calls.at(-1);
  if (!last) {
    if (!tools.includes("read")) return say(`I was not given the read tool, so I cannot open ${task.file}. No verdict.`);
    return call("read", { path: task.file }, `Opening ${task.file}.`);
  }
  if (!last.result) return say(`The ${last.name} call was not answered. No verdict.`);
  if (last.result.isError) return say(`${last.name} failed: ${last.result.text}\nI have not seen the whole file, so there is no verdict.`);
  if (last.name === "submit_verdict") return say(`Reported ${String(last.input.verdict)} for ${task.itemId}.`);
  if (last.name === "request_approval") return say("Waiting for the decision.");
  const next = continuation(last);
  if (next !== undefined) return call("read", { path: task.file, offset: next }, `Reading on from line ${next}.`);
  return report(task, tools, calls.map((c) => withoutNotice(c.result?.text ?? "")).join("\n"));
}

/** A long file comes in pieces; the notice at the end of a piece says where the next one starts. */
function continuation({ result }: ToolCall): number | undefined {
  const m = /\[[^\]\n]*\boffset=(\d+)[^\]\n]*\]\s*$/.exec(result?.text ?? "");
  return m ? Number(m[1]) : undefined;
}

const withoutNotice = (text: string) => text.replace(/\n*\[[^\]\n]*\boffset=\d+[^\]\n]*\]\s*$/, "");

function report(task: LeafTask, tools: readonly string[], content: string): Move {
  const { verdict, reason } = judge(task, content);
  if (tools.includes("submit_verdict")) return call("submit_verdict", { item_id: task.itemId, verdict, reason }, `My verdict is ${verdict}.`);
  return call("request_approval", { summary: reason, proposed_action: `Report ${verdict} for ${task.itemId}.` }, "Asking for approval.");
}

/** FLAGGED with the matching line, or CLEAR with the line that says which system the file came from. */
export function judge(task: LeafTask, content: string): { verdict: "FLAGGED" | "CLEAR"; reason: string } {
  const lines = content.split("\n").map((l) => l.trimEnd());
  const at = lines.findIndex((l) => l.includes(task.pattern));
  if (at >= 0) return { verdict: "FLAGGED", reason: `${task.file} contains "${task.pattern}" on line ${at + 1}: ${quoteLine(lines[at]!)}` };
  const id = lines.find((l) => /^PRETTY_NAME=/.test(l)) ?? lines.find((l) => /^NAME=/.test(l)) ?? lines.find((l) => l.trim());
  const saw = id === undefined ? "the file is empty" : `what the file says is: ${quoteLine(id)}`;
  return { verdict: "CLEAR", reason: `${task.file} does not contain "${task.pattern}"; ${saw}` };
}

const quoteLine = (line: string) => (line.length > 300 ? `${line.slice(0, 300)}...` : line);

function promptMove({ prompt, tools, calls }: Conversation): Move {
  const intents = parseIntents(prompt);
  const unanswered = calls.find((c) => !c.result);
  if (unanswered) return say(`The ${unanswered.name} call was not answered.`);
  const next = intents[calls.length];
  if (next && !calls.at(-1)?.result?.isError) {
    if (!tools.includes(next.tool)) return say(`I was not given the ${next.tool} tool, so I cannot do that.`);
    return call(next.tool, next.input, `Calling ${next.tool}.`);
  }
  if (!calls.length) return say(`I am ${MODEL_ID}, a script, not a language model. I follow: run \`COMMAND\`, read PATH, list PATH, grep \`PATTERN\` in PATH, write \`TEXT\` to PATH.`);
  return say(calls.map((c) => (c.result!.isError ? `The ${c.name} call failed: ${c.result!.text}` : c.result!.text)).join("\n"));
}
