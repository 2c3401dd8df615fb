import { existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { freePort, startRedis, type RedisServer } from "@dialout/common/testkit";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { FakeCluster, Harness, KEY, SELECTOR, startModel } from "./testkit";

interface Asked {
  headers: Record<string, unknown>;
  url: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

/** A model whose answers the test gives, one per request; the last one repeats. */
class Stub {
  readonly asked: Asked[] = [];
  answers: { status: number; body?: unknown; hang?: boolean }[] = [];
  private constructor(private readonly server: Server, readonly url: string) {}

  static async start(): Promise<Stub> {
    const server = createServer((request, response) => {
      let text = "";
      request.setEncoding("utf8").on("data", (t: string) => (text += t));
      request.on("end", () => {
        stub.asked.push({ headers: request.headers, url: request.url ?? "", body: JSON.parse(text) });
        const answer = stub.answers.length > 1 ? stub.answers.shift()! : stub.answers[0]!;
        if (answer.hang) return;
        response.writeHead(answer.status, { "content-type": "application/json" }).end(JSON.stringify(answer.body));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const stub = new Stub(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return stub;
  }

  /** The model's turn: any number of tool calls, or words. */
  static turn(...blocks: (string | { name: string; input: object })[]) {
    const content = blocks.map((b, i) => (typeof b === "string" ? { type: "text", text: b } : { type: "tool_use", id: `t${i}`, ...b }));
    const stop_reason = blocks.some((b) => typeof b !== "string") ? "tool_use" : "end_turn";
    return { status: 200, body: { id: "m", type: "message", role: "assistant", model: "stub", content, stop_reason, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } } };
  }

  static refuse(status: number, type: string, message: string) {
    return { status, body: { type: "error", error: { type, message } } };
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

let redis: RedisServer;
let cluster: FakeCluster;
let stub: Stub;
let harness: Harness;
let base: Record<string, string>;

beforeAll(async () => {
  redis = await startRedis();
  cluster = new FakeCluster();
  stub = await Stub.start();
  base = { REDIS_URL: redis.url, KUBECTL: cluster.kubectl, KAGENTI_SANDBOX_POOL_SELECTOR: SELECTOR, SH_MODEL_MAX_RETRIES: "1", SH_MODEL_TIMEOUT_MS: "2000" };
  harness = await Harness.start({ ...base, ANTHROPIC_BASE_URL: stub.url });
});
afterAll(async () => {
  await harness.process.stop();
  await stub.stop();
  await redis.stop();
  cluster.remove();
});
beforeEach(() => void (stub.asked.length = 0));

const fresh = () => `s-${crypto.randomUUID()}`;
const verdict = (over: object = {}) => ({ name: "submit_verdict", input: { item_id: "i1", verdict: "CLEAR", reason: "nothing there", ...over } });

describe("an endpoint that refuses", () => {
  it("401: names URL, status and the variable, asks once, shows no key", async () => {
    stub.answers = [Stub.refuse(401, "authentication_error", `invalid x-api-key ${KEY}`)];
    const a = await harness.review(fresh(), "Alpine");
    expect(a.body).toMatchObject({ status: "failed", reason: "error" });
    expect(a.body.message).toBe(`model endpoint ${stub.url}/v1/messages answered HTTP 401: authentication_error: invalid x-api-key [redacted]. Check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN`);
    expect(stub.asked).toHaveLength(1);
    expect(harness.process.output()).not.toContain(KEY);
  });

  it("404: names the model", async () => {
    stub.answers = [Stub.refuse(404, "not_found_error", "model: nope")];
    const a = await harness.review(fresh(), "Alpine", { model: "nope" });
    expect(a.body.message).toMatch(/HTTP 404: not_found_error: model: nope\. Check the model id "nope" and ANTHROPIC_BASE_URL$/);
  });

  it("500: tries a bounded number of times", async () => {
    stub.answers = [Stub.refuse(500, "api_error", "down")];
    const a = await harness.review(fresh(), "Alpine");
    expect(a.body.message).toMatch(/answered HTTP 500 \(2 tries\): api_error: down/);
    expect(stub.asked).toHaveLength(2);
  });

  it("500 once, then well: nobody notices", async () => {
    stub.answers = [Stub.refuse(500, "api_error", "down"), Stub.turn(verdict())];
    expect((await harness.review(fresh(), "Alpine")).body).toMatchObject({ status: "done", model: { served: "stub", scripted: false } });
  });

  it("one that never answers is given up", async () => {
    stub.answers = [{ status: 0, hang: true }];
    const a = await harness.review(fresh(), "Alpine");
    expect(a.body.message).toMatch(/did not answer within 2000 ms.*SH_MODEL_TIMEOUT_MS/);
  });

  it("an answer that is no message is an error, not a crash", async () => {
    stub.answers = [{ status: 200, body: { hello: 1 } }];
    expect((await harness.review(fresh(), "Alpine")).body).toMatchObject({ status: "failed", reason: "error", message: expect.stringContaining(stub.url) as string });
  });
});

describe("an endpoint that is not there", () => {
  it("is named with its cause", async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const other = await Harness.start({ ...base, ANTHROPIC_BASE_URL: url });
    try {
      const a = await other.review(fresh(), "Alpine");
      expect(a.body.message).toMatch(new RegExp(`^model endpoint ${url}/v1/messages cannot be reached \\(2 tries\\): ECONNREFUSED.*Check ANTHROPIC_BASE_URL$`));
    } finally {
      await other.process.stop();
    }
  });

  it("without credentials no sandbox is leased and the variable is named", async () => {
    const other = await Harness.start({ ...base, ANTHROPIC_API_KEY: "" });
    try {
      const a = await other.review(fresh(), "Alpine");
      expect(a.body).toMatchObject({ status: "failed", reason: "error", message: "no model credentials: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN." });
      expect(a.body.sandbox).toBeUndefined();
    } finally {
      await other.process.stop();
    }
  });
});

describe("credentials", () => {
  it("a key goes as x-api-key", async () => {
    stub.answers = [Stub.turn(verdict())];
    await harness.review(fresh(), "Alpine");
    expect(stub.asked[0]!.headers).toMatchObject({ "x-api-key": KEY });
    expect(stub.asked[0]!.headers.authorization).toBeUndefined();
  });

  it("an auth token goes as bearer, and then there is no x-api-key; a base URL may end in /v1", async () => {
    const other = await Harness.start({ ...base, ANTHROPIC_BASE_URL: `${stub.url}/v1/`, ANTHROPIC_AUTH_TOKEN: "tok-1234", SH_MODEL: "my-model" });
    try {
      stub.answers = [Stub.turn(verdict())];
      await other.review(fresh(), "Alpine");
      expect(stub.asked[0]).toMatchObject({ url: "/v1/messages", headers: { authorization: "Bearer tok-1234" }, body: { model: "my-model" } });
      expect(stub.asked[0]!.headers["x-api-key"]).toBeUndefined();
    } finally {
      await other.process.stop();
    }
  });

  it("the scripted endpoint with a key of its own refuses another", async () => {
    const model = await startModel({ MODEL_API_KEY: "the-right-one" });
    const other = await Harness.start({ ...base, ANTHROPIC_BASE_URL: model.url });
    try {
      expect((await other.review(fresh(), "Alpine")).body.message).toMatch(/HTTP 401: authentication_error: invalid x-api-key/);
    } finally {
      await other.process.stop();
      await model.process.stop();
    }
  });
});

describe("verdicts", () => {
  it("for another item, or without a reason, are refused and may be corrected", async () => {
    stub.answers = [Stub.turn(verdict({ item_id: "i2" })), Stub.turn(verdict({ reason: " " })), Stub.turn(verdict({ reason: undefined })), Stub.turn(verdict())];
    const a = await harness.review(fresh(), "Alpine");
    expect(a.body).toMatchObject({ status: "done", verdict: { item_id: "i1", reason: "nothing there" }, turns: 4 });
    const told = stub.asked.slice(1).map((r) => r.body.messages.at(-1).content[0]);
    expect(told[0]).toMatchObject({ type: "tool_result", is_error: true, content: expect.stringMatching(/item_id must be "i1"/) as string });
    expect(told[1].content).toMatch(/reason/);
    expect(told[2]).toMatchObject({ is_error: true });
  });

  it("that never become acceptable end as invalid_verdict", async () => {
    stub.answers = [Stub.turn(verdict({ verdict: "MAYBE" })), Stub.turn("I give up.")];
    expect((await harness.review(fresh(), "Alpine")).body).toMatchObject({ status: "failed", reason: "invalid_verdict", message: expect.stringMatching(/verdict: .*I give up/) as string });
  });

  it("none at all is no_verdict, with the model's last words", async () => {
    stub.answers = [Stub.turn("I would rather not.")];
    expect((await harness.review(fresh(), "Alpine")).body).toMatchObject({ status: "failed", reason: "no_verdict", message: expect.stringContaining("I would rather not.") as string });
  });

  it("end the work: a call in the same breath does not run", async () => {
    const trace = cluster.path("sandbox-0", "after");
    stub.answers = [Stub.turn(verdict(), { name: "bash", input: { command: `touch ${trace}` } })];
    const a = await harness.review(fresh(), "Alpine");
    expect(a.body).toMatchObject({ status: "done" });
    expect(a.body.tools).toMatchObject([{ tool: "submit_verdict", ok: true }, { tool: "bash", ok: false, execs: [] }]);
    expect(existsSync(trace)).toBe(false);
    expect(stub.asked).toHaveLength(1);
  });

  it("calls made together run one after the other, in order", async () => {
    const f = cluster.path("sandbox-0", "order");
    stub.answers = [Stub.turn({ name: "bash", input: { command: `sleep 0.3; echo one >> ${f}` } }, { name: "bash", input: { command: `echo two >> ${f}` } }, { name: "read", input: { path: f } }), Stub.turn(verdict())];
    await harness.review(fresh(), "Alpine");
    const results = stub.asked[1]!.body.messages.at(-1).content;
    expect(results[2].content).toContain("one\ntwo");
  });

  it("cannot be given before an approval, because the tool is not there", async () => {
    stub.answers = [Stub.turn(verdict()), Stub.turn("well")];
    const a = await harness.ask("/runs", { sessionId: fresh(), item: { item_id: "i1", file: "/x", pattern: "y", require_approval: true } });
    expect(stub.asked[0]!.body.tools.map((t: { name: string }) => t.name)).not.toContain("submit_verdict");
    expect(a.body.status).toBe("failed");
  });

  it("the prompt names item, path and pattern", async () => {
    stub.answers = [Stub.turn(verdict())];
    await harness.ask("/runs", { sessionId: fresh(), workspaceRef: "/workspace/repo", item: { item_id: "i1", file: "src/a b.ts", pattern: 'x"y' } });
    const text = stub.asked[0]!.body.messages[0].content[0].text as string;
    for (const part of ['"i1"', '"/workspace/repo/src/a b.ts"', JSON.stringify('x"y')]) expect(text).toContain(part);
  });
});

afterEach(() => expect(harness.process.exit).toBeUndefined());
