import http from "node:http";
import { Counter, Gauge, Histogram, Registry as Prometheus } from "prom-client";
import { SettingError, type Logger } from "@dialout/common";

/** The worker's numbers. They are counted always and served only when a port is set. */
export class Metrics {
  private readonly registry = new Prometheus();
  private readonly registers = [this.registry];
  readonly attached = new Gauge({ name: "dialout_worker_attached", help: "1 while the relay has accepted this worker", registers: this.registers });
  readonly sessions = new Counter({ name: "dialout_worker_sessions_total", help: "Attach streams by how they ended", labelNames: ["end"], registers: this.registers });
  readonly running = new Gauge({ name: "dialout_worker_execs_running", help: "Commands running now", registers: this.registers });
  readonly queued = new Gauge({ name: "dialout_worker_execs_queued", help: "Commands waiting for a free place", registers: this.registers });
  readonly seconds = new Histogram({ name: "dialout_worker_exec_seconds", help: "Duration of commands by result", labelNames: ["result"], buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300, 1800], registers: this.registers });
  readonly bytes = new Counter({ name: "dialout_worker_output_bytes_total", help: "Output sent, by stream", labelNames: ["stream"], registers: this.registers });
  readonly killed = new Counter({ name: "dialout_worker_processes_killed_total", help: "Processes killed, by cause and by whether it is certain that none is left", labelNames: ["why", "verified"], registers: this.registers });
  readonly dedup = new Counter({ name: "dialout_worker_redeliveries_total", help: "Deliveries of known commands, by answer", labelNames: ["answer"], registers: this.registers });

  async serve(at: { host: string; port: number }, log: Logger): Promise<http.Server> {
    const server = http.createServer((req, res) => {
      if (req.method !== "GET" || req.url !== "/metrics") return void res.writeHead(404).end();
      this.registry.metrics().then(
        (text) => res.writeHead(200, { "content-type": this.registry.contentType }).end(text),
        () => res.writeHead(500).end(),
      );
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", (e: NodeJS.ErrnoException) => reject(new SettingError(`WORKER_METRICS_PORT=${at.port} cannot be bound on ${at.host} (${e.code}). Choose a free port, or 0 for any`)));
      server.listen(at.port, at.host, resolve);
    });
    log.info({ address: server.address() }, "metrics served");
    return server;
  }
}
