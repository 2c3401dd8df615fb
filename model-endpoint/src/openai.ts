import { z } from "zod";
import { stableId, tokens } from "./anthropic";
import { conversationOf, type Conversation, type Move, type Turn } from "./conversation";
import { MODEL_ID } from "./script";

const content = z.union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))]).nullish();
const toolCall = z.looseObject({ id: z.string().min(1), function: z.looseObject({ name: z.string().min(1), arguments: z.string() }) });
const message = z.discriminatedUnion("role", [
  z.looseObject({ role: z.enum(["system", "developer"]), content }),
  z.looseObject({ role: z.literal("user"), content }),
  z.looseObject({ role: z.literal("assistant"), content, tool_calls: z.array(toolCall).nullish() }),
  z.looseObject({ role: z.literal("tool"), tool_call_id: z.string().min(1), content }),
]);

/** A chat-completions request, as far as the script needs it. */
export const chatRequest = z.looseObject({
  model: z.string().min(1),
  messages: z.array(message).min(1),
  tools: z.array(z.looseObject({ function: z.looseObject({ name: z.string().min(1) }) })).optional(),
  stream: z.boolean().nullish(),
});
export type ChatRequest = z.infer<typeof chatRequest>;

const textOf = (c: z.infer<typeof content>) => (typeof c === "string" ? c : (c ?? []).map((p) => p.text ?? "").join("\n"));

function input(json: string): Record<string, unknown> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(json || "{}"));
  } catch {
    return {};
  }
}

/** This protocol has no error flag on a tool message; our harness starts every failure with these words. */
export const FAILURE = /^Tool failed: /;

function turnsOf(m: ChatRequest["messages"][number]): Turn[] {
  if (m.role === "user") return [{ role: "user", text: textOf(m.content) }];
  if (m.role === "assistant") return [{ role: "assistant", calls: (m.tool_calls ?? []).map((c) => ({ id: c.id, name: c.function.name, input: input(c.function.arguments) })) }];
  if (m.role === "tool") return [{ role: "results", results: [{ id: m.tool_call_id, text: textOf(m.content), isError: FAILURE.test(textOf(m.content)) }] }];
  return [];
}

export function fromChat(request: ChatRequest): Conversation {
  return conversationOf(request.messages.flatMap(turnsOf), (request.tools ?? []).map((t) => t.function.name));
}

function parts(request: ChatRequest, move: Move) {
  const calls = move.kind === "call" ? [{ id: stableId("call_", request), type: "function", function: { name: move.name, arguments: JSON.stringify(move.input) } }] : undefined;
  const prompt_tokens = tokens(request.messages);
  const completion_tokens = tokens(move);
  return {
    head: { id: stableId("chatcmpl-", request), created: 0, model: MODEL_ID },
    delta: { role: "assistant", content: move.text, ...(calls && { tool_calls: calls }) },
    finish_reason: calls ? "tool_calls" : "stop",
    usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
  };
}

export function toCompletion(request: ChatRequest, move: Move): Record<string, unknown> {
  const { head, delta, finish_reason, usage } = parts(request, move);
  return { ...head, object: "chat.completion", choices: [{ index: 0, message: delta, finish_reason }], usage };
}

/** The chunks of a streamed answer; the caller ends the stream with `[DONE]`. */
export function toChunks(request: ChatRequest, move: Move): Record<string, unknown>[] {
  const { head, delta, finish_reason, usage } = parts(request, move);
  const chunk = (choices: unknown[], more: Record<string, unknown> = {}) => ({ ...head, object: "chat.completion.chunk", choices, ...more });
  const tool_calls = delta.tool_calls?.map((c, index) => ({ index, ...c }));
  return [
    chunk([{ index: 0, delta: { ...delta, ...(tool_calls && { tool_calls }) }, finish_reason: null }]),
    chunk([{ index: 0, delta: {}, finish_reason }]),
    chunk([], { usage }),
  ];
}
