import type { Server } from "node:http";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { closeServer, createLogger, listen } from "@dialout/common";
import { generateText, stepCountIs, streamText, tool, type LanguageModel } from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { createHandler } from "./server";

(globalThis as { AI_SDK_LOG_WARNINGS?: boolean }).AI_SDK_LOG_WARNINGS = false;

let open: { server: Server; port: number };
let locked: { server: Server; port: number };
const log = createLogger("test", "silent");

beforeAll(async () => {
  open = await listen(createHandler({ host: "127.0.0.1", port: 0, maxBody: 4096 }, log), "127.0.0.1", 0);
  locked = await listen(createHandler({ host: "127.0.0.1", port: 0, maxBody: 4096, apiKey: "right" }, log), "127.0.0.1", 0);
});
afterAll(() => Promise.all([open, locked].map(({ server }) => closeServer(server, AbortSignal.abort()))));

const url = (s = open) => `http://127.0.0.1:${s.port}`;
const post = (path: string, body: string, headers: Record<string, string> = { "x-api-key": "any" }, s = open) => fetch(url(s) + path, { method: "POST", body, headers });

describe.each<[string, () => LanguageModel]>([
  ["messages", () => createAnthropic({ baseURL: `${url()}/v1`, apiKey: "any" })("some-model")],
  ["chat completions", () => createOpenAICompatible({ name: "x", baseURL: `${url()}/v1`, apiKey: "any" })("some-model")],
])("%s, spoken by a real client library", (_, model) => {
  const ran: string[] = [];
  const tools = {
    bash: tool({
      inputSchema: z.object({ command: z.string() }),
      execute: ({ command }) => {
        ran.push(command);
        if (command === "bad") throw new Error("Tool failed: exploded");
        return `output of ${command}`;
      },
    }),
  };

  it("calls the tool and answers with its output", async () => {
    ran.length = 0;
    const result = await generateText({ model: model(), tools, prompt: "run `one` and run `two`", stopWhen: stepCountIs(5) });
    expect(ran).toEqual(["one", "two"]);
    expect(result.text).toBe("output of one\noutput of two");
    expect(result.finishReason).toBe("stop");
    expect(result.response.modelId).toBe("scripted-1");
    expect(result.totalUsage.inputTokens).toBeGreaterThan(10);
  });

  it("streams the same", async () => {
    ran.length = 0;
    const result = streamText({ model: model(), tools, prompt: "run `" + "x".repeat(300) + "`", stopWhen: stepCountIs(5) });
    expect(await result.text).toBe(`output of ${"x".repeat(300)}`);
    expect(ran).toEqual(["x".repeat(300)]);
    expect(await result.finishReason).toBe("stop");
  });

  it("is told of a failed tool and does not call it success", async () => {
    const result = await generateText({ model: model(), tools, prompt: "run `bad`", stopWhen: stepCountIs(5) });
    expect(result.text).toBe("The bash call failed: Tool failed: exploded");
  });
});

describe("credentials", () => {
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hello" }] });
  it.each([
    ["none", {}, 401, 401],
    ["an empty key", { "x-api-key": "" }, 401, 401],
    ["a wrong key", { "x-api-key": "wrong" }, 200, 401],
    ["the right key", { "x-api-key": "right" }, 200, 200],
    ["the right bearer", { authorization: "Bearer right" }, 200, 200],
    ["another scheme", { authorization: "Basic right" }, 401, 401],
  ])("%s", async (_, headers, any, one) => {
    expect((await post("/v1/messages", body, headers as Record<string, string>)).status).toBe(any);
    const answer = await post("/v1/messages", body, headers as Record<string, string>, locked);
    expect(answer.status).toBe(one);
    if (one === 401) expect(await answer.json()).toMatchObject({ type: "error", error: { type: "authentication_error" } });
  });
});

describe("bad requests get the protocol's own errors", () => {
  it.each([
    ["/v1/messages", "{", 400, "invalid_request_error"],
    ["/v1/messages", "[]", 400, "invalid_request_error"],
    ["/v1/messages", '{"model":"m","messages":[]}', 400, "invalid_request_error"],
    ["/v1/messages", '{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result"}]}]}', 400, "invalid_request_error"],
    ["/v1/chat/completions", '{"model":"m","messages":[{"role":"nobody"}]}', 400, "invalid_request_error"],
    ["/v1/nothing", "{}", 404, "not_found_error"],
    ["/v1/messages", `"${"x".repeat(5000)}"`, 413, "request_too_large"],
  ])("%s %s", async (path, body, status, type) => {
    const answer = await post(path, body);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ error: { type } });
  });
});

it("health needs no key; the list of models says what this is", async () => {
  expect(await (await fetch(`${url()}/health`)).text()).toBe("ok");
  const list = await fetch(`${url()}/v1/models`, { headers: { "x-api-key": "k" } });
  expect(await list.json()).toMatchObject({ data: [{ id: "scripted-1", display_name: "Scripted (no language model)" }] });
});

it("counts tokens", async () => {
  const answer = await post("/v1/messages/count_tokens", JSON.stringify({ model: "m", messages: [{ role: "user", content: "hello" }] }));
  expect(await answer.json()).toEqual({ input_tokens: expect.any(Number) as number });
});
