/** What the script sees of a request, whichever protocol it came in. */
export interface ToolCall {
  id: string;
  name: string;
  input: Record<string, unknown>;
  /** Missing while the caller has not answered the call. */
  result?: { text: string; isError: boolean };
}

export interface Conversation {
  /** The last text the user wrote: the task. */
  prompt: string;
  /** Names of the tools the caller offers. */
  tools: readonly string[];
  /** Tool calls made for this task so far, oldest first. */
  calls: readonly ToolCall[];
}

/** The model's move: say something and stop, or call one tool. */
export type Move = { kind: "text"; text: string } | { kind: "call"; name: string; input: Record<string, unknown>; text: string };

/** A message of either protocol, brought to one shape. */
export type Turn =
  | { role: "user"; text: string }
  | { role: "assistant"; calls: readonly { id: string; name: string; input: Record<string, unknown> }[] }
  | { role: "results"; results: readonly { id: string; text: string; isError: boolean }[] };

/** Keeps only what belongs to the last task: earlier tasks of a chat must not be mistaken for work already done. */
export function conversationOf(turns: readonly Turn[], tools: readonly string[]): Conversation {
  let prompt = "";
  let calls: ToolCall[] = [];
  for (const turn of turns) {
    if (turn.role === "user") {
      prompt = turn.text;
      calls = [];
    } else if (turn.role === "assistant") {
      calls.push(...turn.calls.map((c) => ({ ...c })));
    } else {
      for (const { id, text, isError } of turn.results) {
        const call = calls.find((c) => c.id === id);
        if (call) call.result = { text, isError };
      }
    }
  }
  return { prompt, tools, calls };
}
