// Errors as gRPC statuses.
import * as grpc from "@grpc/grpc-js";
import { Any } from "google-protobuf/google/protobuf/any_pb";
import { Struct } from "google-protobuf/google/protobuf/struct_pb";
import { ErrorResourceInitFailed } from "@pulumi/pulumi/proto/provider_pb";
import { Status } from "@pulumi/pulumi/proto/status_pb";
import { PartlyMade, UserError, messageOf } from "./errors";

/** What the user reads is the message alone; a fault of ours carries its stack for whoever has to mend it. */
export function asServiceError(error: unknown): Partial<grpc.ServiceError> {
  const message = error instanceof UserError || !(error instanceof Error) ? messageOf(error) : `internal error of the lab stand-in: ${error.stack ?? error.message}`;
  const status: Partial<grpc.ServiceError> = { code: grpc.status.UNKNOWN, message };
  if (error instanceof PartlyMade) {
    status.metadata = new grpc.Metadata();
    status.metadata.add("grpc-status-details-bin", initFailed(error));
  }
  return status;
}

// The only way in this protocol to say "it exists, but": the id and outputs travel as a detail of the status.
function initFailed(error: PartlyMade): Buffer {
  const detail = new ErrorResourceInitFailed();
  detail.setId(error.id);
  detail.setProperties(Struct.fromJavaScript(JSON.parse(JSON.stringify(error.outputs))));
  detail.setReasonsList([error.message]);
  const any = new Any();
  any.pack(detail.serializeBinary(), "pulumirpc.ErrorResourceInitFailed");
  const status = new Status();
  status.setCode(grpc.status.UNKNOWN);
  status.setMessage(error.message);
  status.addDetails(any);
  return Buffer.from(status.serializeBinary());
}
