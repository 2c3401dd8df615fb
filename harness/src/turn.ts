import { randomUUID } from "node:crypto";
import type { ModelMessage } from "ai";
import { runLoop, type LoopTrail } from "./leaf/loop";
import { LeafFailure } from "./leaf/result";
import { sessionKey } from "./leaf/session-id";
import { traceOf } from "./leaf/trace";
import { chooseModel } from "./model/provider";
import type { Services } from "./services";
import { SessionLog } from "./store/session-log";

export interface TurnAnswer {
  sessionId: string;
  response: string;
  stopReason: string;
  errorMessage?: string;
}

const stopReasons: Record<string, string> = { stop: "stop", length: "length", "tool-calls": "toolUse" };

/**
 * One turn of a chat. It never leases: tools are offered only with a fixed sandbox (KAGENTI_SANDBOX_POD or _NAME) or
 * SH_SANDBOX_LOCAL=1. Undefined when the session is asked for by name and does not exist. Rejects with StoreError.
 */
export async function takeTurn(services: Services, prompt: string, asked: string | undefined, traceparent: string | undefined, signal: AbortSignal): Promise<TurnAnswer | undefined> {
  const { settings } = services;
  const sessionId = asked ?? randomUUID();
  const sid = sessionKey(sessionId);
  const session = new SessionLog(services.store, sid, settings.sessionTtlS);
  const entries = await session.read();
  if (asked !== undefined && !entries.length) return undefined;
  const messages: ModelMessage[] = entries.flatMap((e) => (e.type === "message" ? [{ role: e.role, content: e.text }] : []));
  messages.push({ role: "user", content: prompt });
  await session.append({ type: "message", role: "user", text: prompt });
  const trace = traceOf(traceparent);
  const log = services.log.child({ session: sid, trace_id: trace.traceId });
  const trail: LoopTrail = { records: [], turns: 0 };
  try {
    const chosen = chooseModel(settings.model);
    const fixed = ["pod", "name", "local"].includes(settings.sandbox.placement.kind);
    const sandbox = fixed ? await services.sandboxes.lease(sid, signal) : undefined;
    try {
      const output = await runLoop({
        chosen,
        settings: settings.model,
        messages,
        maxTurns: settings.maxTurns,
        signal,
        log,
        tools: { sandbox, harnessCwd: process.cwd(), traceparent: trace.traceparent, reporting: undefined },
        onCall: (record) => {
          services.metrics.toolCall(record);
          log.info({ tool: record.tool, ok: record.ok, ms: record.ms, execs: record.execs.map((e) => ({ exec_id: e.execId, exit: e.exitCode })) }, "tool call");
        },
      }, trail);
      // An empty message would be refused by most endpoints when the chat goes on.
      if (output.text) await session.append({ type: "message", role: "assistant", text: output.text });
      return { sessionId, response: output.text, stopReason: stopReasons[output.stopReason] ?? output.stopReason };
    } finally {
      await sandbox?.release();
    }
  } catch (e) {
    if (!(e instanceof LeafFailure)) throw e;
    log.warn({ cause: e.message }, "turn failed");
    return { sessionId, response: "", stopReason: "error", errorMessage: e.message };
  }
}
