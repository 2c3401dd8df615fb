// Progress lines to the Pulumi engine. A line that cannot be delivered is dropped: it must not fail the resource.
import * as grpc from "@grpc/grpc-js";
import { EngineClient } from "@pulumi/pulumi/proto/engine_grpc_pb";
import { LogRequest, LogSeverity } from "@pulumi/pulumi/proto/engine_pb";

const DEADLINE_MS = 5_000;

export class EngineLog {
  private readonly client: EngineClient | undefined;
  private pending: Promise<void> = Promise.resolve();

  constructor(address: string | undefined) {
    this.client = address ? new EngineClient(address, grpc.credentials.createInsecure()) : undefined;
  }

  /** Shown beside the resource while it is worked on. */
  status(urn: string, message: string): void {
    const client = this.client;
    if (!client) return;
    const request = new LogRequest();
    request.setSeverity(LogSeverity.INFO);
    request.setMessage(message);
    request.setUrn(urn);
    request.setEphemeral(true);
    // one after the other, so that lines keep their order
    this.pending = this.pending.then(() => new Promise<void>((resolve) => {
      client.log(request, new grpc.Metadata(), { deadline: Date.now() + DEADLINE_MS }, () => resolve());
    }));
  }

  /** Resolves when all lines so far are delivered. */
  async flush(): Promise<void> {
    await this.pending;
  }
}
