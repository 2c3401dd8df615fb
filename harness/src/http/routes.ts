import type { IncomingMessage, ServerResponse } from "node:http";
import { HttpError, parseJson, readBody, send, sendJson } from "@dialout/common";
import { envelopeSchema, problemsOf, turnSchema } from "../envelope";
import { LeafRunner, Refused } from "../leaf/runner";
import { sessionKey } from "../leaf/session-id";
import type { Services } from "../services";
import { StoreError } from "../store/redis";
import { SessionLog } from "../store/session-log";
import { takeTurn } from "../turn";

type Handler = (request: IncomingMessage, response: ServerResponse, url: URL) => Promise<void> | void;

/** A body that is not what it should be. `code` is the contract's word for it. */
class BadBody extends Error {
  constructor(readonly code: string, readonly problems: string[]) {
    super(problems.join("; "));
  }
}

const header = (request: IncomingMessage, name: string) => [request.headers[name]].flat()[0];

/** Everything the harness answers over HTTP. `stop` aborts turns when the process ends; leaves have their runner's drain. */
export function createRoutes(services: Services, runner: LeafRunner, stop: AbortSignal): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const { settings, log } = services;

  async function json(request: IncomingMessage, code: string): Promise<unknown> {
    try {
      return parseJson(await readBody(request, settings.maxBody));
    } catch (e) {
      if (e instanceof HttpError && e.status === 400) throw new BadBody(code, [e.message]);
      throw e;
    }
  }

  const runs: Handler = async (request, response) => {
    const parsed = envelopeSchema.safeParse(await json(request, "envelope_invalid"));
    if (!parsed.success) throw new BadBody("envelope_invalid", problemsOf(parsed.error));
    const envelope = parsed.data;
    if (envelope.workloadId !== undefined) return sendJson(response, 404, { error: "workload_not_found", message: "this harness keeps no workloads; leave workloadId out" });
    if (envelope.env_key !== undefined) log.warn({ session: envelope.sessionId }, "env_key is not supported and ignored");
    const job = runner.submit(envelope, header(request, "traceparent"));
    if (envelope.async) {
      await job.accepted;
      return sendJson(response, 202, { status: "accepted", sessionId: envelope.sessionId });
    }
    const result = await job.result;
    if (result.status === "failed" && result.reason === "saturated") throw new Refused("saturated", result.message);
    sendJson(response, 200, result);
  };

  const status: Handler = async (_, response, url) => {
    const sessionId = url.searchParams.get("sessionId");
    if (!sessionId) return sendJson(response, 400, { error: "sessionId_required" });
    const sid = sessionKey(sessionId, url.searchParams.get("tenant") ?? undefined);
    const running = runner.runs(sid) || (await services.leases.load(`leaf:run:${sid}`)) > 0;
    const record = await services.results.get(sid);
    // A paused leaf that runs again still has its old record: say so, the record is not the last word.
    if (record) return sendJson(response, 200, { ...record, known: true, ...(running && { running }) });
    const known = running || (await new SessionLog(services.store, sid, settings.sessionTtlS).exists());
    sendJson(response, 200, { status: "queued", known, running });
  };

  const turn: Handler = async (request, response) => {
    const parsed = turnSchema.safeParse(await json(request, "invalid_json"));
    if (!parsed.success) throw new BadBody(parsed.error.issues.some((i) => i.path[0] === "prompt") ? "prompt_required" : "invalid_json", problemsOf(parsed.error));
    const answer = await takeTurn(services, parsed.data.prompt, parsed.data.sessionId, header(request, "traceparent"), stop);
    if (answer) sendJson(response, 200, answer);
    else sendJson(response, 404, { error: "session_not_found" });
  };

  const metrics: Handler = async (_, response) => send(response, 200, await services.metrics.registry.metrics(), { "content-type": services.metrics.registry.contentType });
  const noWorkloads: Handler = (_, response) => sendJson(response, 501, { error: "context_service_not_configured" });

  const table: Record<string, Handler> = {
    "GET /health": (_, response) => send(response, 200, "ok"),
    "POST /runs": runs,
    "POST /run-leaf": runs,
    "GET /runs/status": status,
    "GET /run-leaf/status": status,
    "POST /turn": turn,
    "GET /metrics": metrics,
    "POST /workloads": noWorkloads,
  };

  function find(method: string, path: string): Handler | undefined {
    if (/^(GET|DELETE) \/workloads\/[^/]+$/.test(`${method} ${path}`)) return noWorkloads;
    return table[`${method === "HEAD" ? "GET" : method} ${path}`];
  }

  return async (request, response) => {
    try {
      const url = new URL(request.url ?? "/", "http://harness");
      const handler = find(request.method ?? "GET", url.pathname);
      if (!handler) return send(response, 404, "");
      await handler(request, response, url);
    } catch (e) {
      fail(e, response);
    }
  };

  function fail(e: unknown, response: ServerResponse): void {
    const retry = { "retry-after": String(settings.saturation.retryAfterS) };
    if (e instanceof BadBody) return sendJson(response, 400, { error: e.code, problems: e.problems });
    if (e instanceof HttpError) return sendJson(response, e.status, { error: e.status === 413 ? "body_too_large" : "bad_request", message: e.message });
    if (e instanceof Refused && e.kind === "saturated") return sendJson(response, 503, { status: "failed", reason: "saturated", message: e.message }, retry);
    if (e instanceof Refused) return sendJson(response, 409, { error: "session_running", message: e.message }, retry);
    if (e instanceof StoreError) return sendJson(response, 503, { status: "failed", reason: "error", error: "store_unavailable", message: e.message }, retry);
    if ((e as NodeJS.ErrnoException).code === "ERR_INVALID_URL") return send(response, 404, "");
    log.error({ err: e }, "request failed");
    sendJson(response, 500, { error: "internal error" });
  }
}
