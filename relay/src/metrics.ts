import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import type { QueueMeter } from "./sink";

/** How an exec ended, as seen by the relay. */
export type Outcome = "end" | "error" | "disconnected" | "cancelled" | "taken_over" | "refused";

/** What the gauges read when they are scraped. */
export interface Gauges {
  attached(): number;
  inFlight(): number;
  queue: QueueMeter;
  redisUp(): boolean;
}

export class Metrics {
  readonly registry = new Registry();
  private readonly registers = [this.registry];

  readonly execSeconds = new Histogram({
    name: "relay_exec_seconds",
    help: "Time from accepting an Exec call to its last event",
    labelNames: ["outcome"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900],
    registers: this.registers,
  });
  readonly execs = this.counter("relay_execs_total", "Exec calls that were accepted", ["caller", "outcome"]);
  private readonly bytes = this.counter("relay_output_bytes_total", "Payload that workers sent, and that callers took", ["at"]);
  // Resolved once: these two are counted for every chunk.
  readonly bytesIn = this.bytes.labels("worker");
  readonly bytesOut = this.bytes.labels("caller");
  readonly aborts = this.counter("relay_aborts_total", "Aborts sent to workers", ["cause"]);
  readonly detaches = this.counter("relay_detaches_total", "Execs left running because their caller's stream was gone", []);
  readonly redeliveries = this.counter("relay_redeliveries_total", "Execs delivered again, and those that took over an open stream", ["kind"]);
  readonly refused = this.counter("relay_refused_total", "Calls refused and sessions ended by the relay", ["method", "reason"]);
  readonly sessions = this.counter("relay_sessions_total", "Worker sessions accepted", []);
  readonly presenceFailures = this.counter("relay_presence_failures_total", "Writes to Redis that failed and are tried again", []);

  constructor(gauges: Gauges) {
    collectDefaultMetrics({ register: this.registry });
    this.gauge("relay_attached_workers", "Worker sessions that are attached", gauges.attached);
    this.gauge("relay_execs_in_flight", "Execs that are delivered and not finished", gauges.inFlight);
    this.gauge("relay_queued_bytes", "Output that waits for callers to read it", () => gauges.queue.bytes);
    this.gauge("relay_redis_up", "1 while the presence store answers", () => (gauges.redisUp() ? 1 : 0));
  }

  private counter<T extends string>(name: string, help: string, labelNames: T[]): Counter<T> {
    return new Counter({ name, help, labelNames, registers: this.registers });
  }

  private gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: this.registers,
      collect() {
        this.set(read());
      },
    });
  }
}
