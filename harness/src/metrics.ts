import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { LeafResult, ToolRecord } from "./leaf/result";

const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];

/** What Prometheus reads at GET /metrics. */
export class Metrics {
  readonly registry = new Registry();
  private readonly leaves = new Counter({ name: "dialout_harness_leaves_total", help: "Leaves ended, by status and reason of failure", labelNames: ["status", "reason"], registers: [this.registry] });
  private readonly leafSeconds = new Histogram({ name: "dialout_harness_leaf_seconds", help: "Duration of leaves that ran", buckets: SECONDS, registers: [this.registry] });
  private readonly running = new Gauge({ name: "dialout_harness_leaves_running", help: "Leaves in this process now", registers: [this.registry] });
  private readonly tools = new Counter({ name: "dialout_harness_tool_calls_total", help: "Tool calls, by tool and outcome", labelNames: ["tool", "ok"], registers: [this.registry] });
  private readonly toolSeconds = new Histogram({ name: "dialout_harness_tool_seconds", help: "Duration of tool calls", labelNames: ["tool"], buckets: SECONDS, registers: [this.registry] });

  inFlight(n: number): void {
    this.running.set(n);
  }

  leafEnded(result: LeafResult): void {
    this.leaves.inc({ status: result.status, reason: result.status === "failed" ? result.reason : "" });
    if (result.elapsedMs !== undefined) this.leafSeconds.observe(result.elapsedMs / 1000);
  }

  toolCall(record: ToolRecord): void {
    this.tools.inc({ tool: record.tool, ok: String(record.ok) });
    this.toolSeconds.observe({ tool: record.tool }, record.ms / 1000);
  }
}
