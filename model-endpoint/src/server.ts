import type { IncomingMessage, ServerResponse } from "node:http";
import { bearerToken, HttpError, parseJson, readBody, secretMatches, send, sendJson, type Logger } from "@dialout/common";
import { z } from "zod";
import { fromMessages, messagesRequest, toEvents, toMessage, tokens } from "./anthropic";
import { chatRequest, fromChat, toChunks, toCompletion } from "./openai";
import { decide, MODEL_ID } from "./script";
import type { EndpointSettings } from "./settings";

type Handler = (body: unknown, response: ServerResponse, log: Logger) => void;

const errorTypes: Record<number, string> = { 400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 405: "invalid_request_error", 413: "request_too_large" };

/** Both protocols put the cause under `error`; this shape satisfies their client libraries alike. */
function sendError(response: ServerResponse, status: number, message: string): void {
  sendJson(response, status, { type: "error", error: { type: errorTypes[status] ?? "api_error", message } });
}

function stream(response: ServerResponse, lines: Iterable<string>): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  for (const line of lines) response.write(line);
  response.end();
}

const messages: Handler = (body, response, log) => {
  const request = messagesRequest.parse(body);
  const move = decide(fromMessages(request));
  log.info({ protocol: "messages", asked: request.model, stream: request.stream ?? false, move: move.kind, tool: move.kind === "call" ? move.name : undefined }, "answered");
  const message = toMessage(request, move);
  if (!request.stream) return sendJson(response, 200, message);
  stream(response, [...toEvents(message)].map((e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`));
};

const completions: Handler = (body, response, log) => {
  const request = chatRequest.parse(body);
  const move = decide(fromChat(request));
  log.info({ protocol: "chat", asked: request.model, stream: request.stream ?? false, move: move.kind, tool: move.kind === "call" ? move.name : undefined }, "answered");
  if (!request.stream) return sendJson(response, 200, toCompletion(request, move));
  stream(response, [...toChunks(request, move).map((c) => `data: ${JSON.stringify(c)}\n\n`), "data: [DONE]\n\n"]);
};

const countTokens: Handler = (body, response) => sendJson(response, 200, { input_tokens: tokens(messagesRequest.parse(body).messages) });

const posts: Record<string, Handler> = {
  "/v1/messages": messages,
  "/v1/messages/count_tokens": countTokens,
  "/v1/chat/completions": completions,
};

/** Why the credentials are not good enough, or undefined. Any key will do unless one is configured; none never does. */
function refusal(request: IncomingMessage, apiKey: string | undefined): string | undefined {
  const key = [request.headers["x-api-key"]].flat()[0] || bearerToken(request.headers.authorization);
  if (!key) return "x-api-key or authorization: Bearer header is required";
  return apiKey === undefined || secretMatches(key, apiKey) ? undefined : "invalid x-api-key";
}

export function createHandler(settings: EndpointSettings, log: Logger): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    const path = (request.url ?? "/").split("?")[0]!;
    try {
      if (request.method === "GET" && path === "/health") return send(response, 200, "ok");
      const denied = refusal(request, settings.apiKey);
      if (denied) throw new HttpError(401, denied);
      if (request.method === "GET" && path === "/v1/models") {
        return sendJson(response, 200, { object: "list", data: [{ id: MODEL_ID, object: "model", type: "model", display_name: "Scripted (no language model)" }], has_more: false });
      }
      const handler = posts[path];
      if (!handler) throw new HttpError(404, `no such route: ${request.method} ${path}`);
      if (request.method !== "POST") throw new HttpError(405, `${path} takes POST`);
      handler(parseJson(await readBody(request, settings.maxBody)), response, log);
    } catch (e) {
      if (e instanceof HttpError) {
        log.warn({ status: e.status, path }, e.message);
        return sendError(response, e.status, e.message);
      }
      if (e instanceof z.ZodError) return sendError(response, 400, z.prettifyError(e));
      log.error({ err: e, path }, "cannot answer");
      sendError(response, 500, "internal error");
    }
  };
}
