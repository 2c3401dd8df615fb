import type { Logger } from "@dialout/common";
import type { TransportError } from "@dialout/transports/errors";
import { generateText, stepCountIs, type LanguageModelUsage, type ModelMessage } from "ai";
import { describeModelFailure } from "../model/failure";
import type { ChosenModel } from "../model/provider";
import type { ModelSettings } from "../model/settings";
import type { Report } from "../tools/report";
import { createToolset, type ToolsetOptions } from "../tools/toolset";
import { SYSTEM } from "./prompt";
import { LeafFailure, type ToolRecord, type Usage } from "./result";

export interface LoopInput {
  chosen: ChosenModel;
  settings: ModelSettings;
  messages: ModelMessage[];
  maxTurns: number;
  tools: Omit<ToolsetOptions, "signal" | "records" | "report" | "onFatal" | "onCall">;
  signal: AbortSignal;
  log: Logger;
  onCall(record: ToolRecord): void;
}

export interface LoopOutput {
  report: Report;
  text: string;
  stopReason: string;
  /** The turn limit ended it. */
  exhausted: boolean;
  turns: number;
  usage: Usage;
  served: string;
}

/** What is known of a run even when it fails halfway. */
export interface LoopTrail {
  records: ToolRecord[];
  usage?: Usage;
  served?: string;
  turns: number;
}

const usageOf = (u: LanguageModelUsage): Usage => ({
  input: u.inputTokens ?? 0,
  output: u.outputTokens ?? 0,
  cacheRead: u.inputTokenDetails?.cacheReadTokens ?? 0,
  cacheWrite: u.inputTokenDetails?.cacheWriteTokens ?? 0,
  total: u.totalTokens ?? (u.inputTokens ?? 0) + (u.outputTokens ?? 0),
});

const sum = (a: Usage | undefined, b: Usage): Usage =>
  a ? { input: a.input + b.input, output: a.output + b.output, cacheRead: a.cacheRead + b.cacheRead, cacheWrite: a.cacheWrite + b.cacheWrite, total: a.total + b.total } : b;

/**
 * Lets the model work until it has reported, has nothing more to call, or has used up its turns. Throws LeafFailure `error`
 * for a model that refuses or cannot be reached and for a sandbox that is gone.
 */
export async function runLoop(input: LoopInput, trail: LoopTrail): Promise<LoopOutput> {
  const report: Report = {};
  let fatal: TransportError | undefined;
  const stop = new AbortController();
  const signal = AbortSignal.any([input.signal, stop.signal]);
  const tools = createToolset({
    ...input.tools,
    signal,
    report,
    records: trail.records,
    onCall: input.onCall,
    onFatal: (e) => {
      fatal ??= e;
      stop.abort(e);
    },
  });
  try {
    const result = await generateText({
      model: input.chosen.model,
      system: SYSTEM,
      messages: input.messages,
      tools,
      stopWhen: [stepCountIs(input.maxTurns), () => report.verdict !== undefined || report.gate !== undefined],
      maxRetries: input.settings.maxRetries,
      maxOutputTokens: input.settings.maxOutputTokens,
      abortSignal: signal,
      onStepFinish: (step) => {
        trail.turns += 1;
        trail.usage = sum(trail.usage, usageOf(step.usage));
        trail.served = step.response.modelId;
        const refused = step.toolCalls.find((c) => c.invalid && c.toolName === "submit_verdict");
        if (refused && !report.verdict) report.invalid = "submit_verdict was called with the wrong fields";
      },
    });
    const exhausted = result.steps.length >= input.maxTurns && result.finishReason === "tool-calls";
    return { report, text: result.text, stopReason: result.finishReason, exhausted, turns: trail.turns, usage: trail.usage ?? usageOf(result.totalUsage), served: result.response.modelId };
  } catch (e) {
    // A verdict that was accepted stands, whatever failed after it.
    if (report.verdict || report.gate) return { report, text: "", stopReason: "error", exhausted: false, turns: trail.turns, usage: trail.usage ?? usageOf({} as LanguageModelUsage), served: trail.served ?? input.chosen.id };
    if (fatal) throw new LeafFailure("error", `the sandbox is lost: ${fatal.message}`, { cause: fatal });
    if (input.signal.aborted) throw new LeafFailure("error", input.signal.reason instanceof Error ? input.signal.reason.message : "stopped");
    throw new LeafFailure("error", describeModelFailure(e, input.settings, input.chosen.provider, input.chosen.id), { cause: e });
  }
}
