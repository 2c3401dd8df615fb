import { createHash } from "node:crypto";
import { z } from "zod";
import { conversationOf, type Conversation, type Move, type Turn } from "./conversation";
import { MODEL_ID } from "./script";

const block = z.looseObject({ type: z.string() });
const content = z.union([z.string(), z.array(block)]);
const textBlock = z.looseObject({ type: z.literal("text"), text: z.string() });
const toolUse = z.looseObject({ type: z.literal("tool_use"), id: z.string().min(1), name: z.string().min(1), input: z.record(z.string(), z.unknown()) });
const toolResult = z.looseObject({ type: z.literal("tool_result"), tool_use_id: z.string().min(1), content: content.optional(), is_error: z.boolean().optional() });

/** A Messages request, as far as the script needs it; what it does not know it leaves alone. */
export const messagesRequest = z.looseObject({
  model: z.string().min(1),
  max_tokens: z.number().int().positive().optional(),
  messages: z.array(z.looseObject({ role: z.enum(["user", "assistant", "system"]), content })).min(1),
  tools: z.array(z.looseObject({ name: z.string().min(1) })).optional(),
  stream: z.boolean().optional(),
});
export type MessagesRequest = z.infer<typeof messagesRequest>;

function textOf(c: z.infer<typeof content> | undefined): string {
  if (c === undefined || typeof c === "string") return c ?? "";
  return c.flatMap((b) => (b.type === "text" ? [textBlock.parse(b).text] : [])).join("\n");
}

function turnsOf({ role, content: c }: MessagesRequest["messages"][number]): Turn[] {
  if (role === "system") return [];
  const blocks = typeof c === "string" ? [] : c;
  if (role === "assistant") {
    return [{ role, calls: blocks.flatMap((b) => (b.type === "tool_use" ? [toolUse.parse(b)] : [])) }];
  }
  const results = blocks.flatMap((b) => (b.type === "tool_result" ? [toolResult.parse(b)] : []));
  if (!results.length) return [{ role: "user", text: textOf(c) }];
  return [{ role: "results", results: results.map((r) => ({ id: r.tool_use_id, text: textOf(r.content), isError: r.is_error ?? false })) }];
}

/** Throws ZodError when a block of a known type has the wrong shape. */
export function fromMessages(request: MessagesRequest): Conversation {
  return conversationOf(request.messages.flatMap(turnsOf), (request.tools ?? []).map((t) => t.name));
}

/** Deterministic stand-in for a tokenizer: four characters a token. */
export const tokens = (value: unknown) => Math.max(1, Math.ceil(JSON.stringify(value).length / 4));

/** The same request gets the same ids: an answer that is asked for again is the same answer. */
export const stableId = (prefix: string, request: unknown) => prefix + createHash("sha256").update(JSON.stringify(request)).digest("hex").slice(0, 24);

type Block = { type: "text"; text: string } | { type: "tool_use"; id: string; name: string; input: Record<string, unknown> };

export interface Message {
  id: string;
  type: "message";
  role: "assistant";
  model: string;
  content: Block[];
  stop_reason: "end_turn" | "tool_use" | null;
  stop_sequence: null;
  usage: { input_tokens: number; output_tokens: number; cache_creation_input_tokens: 0; cache_read_input_tokens: 0 };
}

export function toMessage(request: MessagesRequest, move: Move): Message {
  const blocks: Block[] = [{ type: "text", text: move.text }];
  if (move.kind === "call") blocks.push({ type: "tool_use", id: stableId("toolu_", request), name: move.name, input: move.input });
  return {
    id: stableId("msg_", request),
    type: "message",
    role: "assistant",
    model: MODEL_ID,
    content: blocks,
    stop_reason: move.kind === "call" ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: { input_tokens: tokens(request.messages), output_tokens: tokens(blocks), cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
  };
}

const pieces = (text: string) => text.match(/[\s\S]{1,64}/g) ?? [];

/** The events of a streamed answer, in order; each is one server-sent event named by its `type`. */
export function* toEvents(message: Message): Generator<{ type: string } & Record<string, unknown>> {
  yield { type: "message_start", message: { ...message, content: [], stop_reason: null, usage: { ...message.usage, output_tokens: 1 } } };
  yield { type: "ping" };
  for (const [index, b] of message.content.entries()) {
    const text = b.type === "text";
    yield { type: "content_block_start", index, content_block: text ? { type: "text", text: "" } : { ...b, input: {} } };
    for (const piece of pieces(text ? b.text : JSON.stringify(b.input))) {
      yield { type: "content_block_delta", index, delta: text ? { type: "text_delta", text: piece } : { type: "input_json_delta", partial_json: piece } };
    }
    yield { type: "content_block_stop", index };
  }
  yield { type: "message_delta", delta: { stop_reason: message.stop_reason, stop_sequence: null }, usage: { output_tokens: message.usage.output_tokens } };
  yield { type: "message_stop" };
}
