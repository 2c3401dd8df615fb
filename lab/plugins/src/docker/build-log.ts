// What BuildKit says while it builds: protobuf messages (moby.buildkit.v1.StatusResponse) inside the JSON stream.
import { BinaryReader } from "google-protobuf";

export interface Progress {
  /** Steps that began: `[2/3] COPY a.txt /a.txt`. */
  steps: string[];
  /** Output of commands. */
  output: string;
}

// Field numbers of StatusResponse, Vertex and VertexLog.
const VERTEX = 1;
const LOG = 3;
const VERTEX_NAME = 3;
const VERTEX_STARTED = 5;
const VERTEX_COMPLETED = 6;
const LOG_MESSAGE = 4;

export function readProgress(base64: string): Progress {
  const progress: Progress = { steps: [], output: "" };
  const reader = new BinaryReader(Buffer.from(base64, "base64"));
  while (reader.nextField() && !reader.isEndGroup()) {
    const field = reader.getFieldNumber();
    if (field === VERTEX) reader.readMessage(progress, () => readVertex(reader, progress));
    else if (field === LOG) reader.readMessage(progress, () => readLog(reader, progress));
    else reader.skipField();
  }
  return progress;
}

function readVertex(reader: BinaryReader, progress: Progress): void {
  let name = "";
  let started = false;
  let completed = false;
  while (reader.nextField() && !reader.isEndGroup()) {
    const field = reader.getFieldNumber();
    if (field === VERTEX_NAME) {
      name = reader.readString();
      continue;
    }
    if (field === VERTEX_STARTED) started = true;
    if (field === VERTEX_COMPLETED) completed = true;
    reader.skipField();
  }
  if (started && !completed) progress.steps.push(name);
}

function readLog(reader: BinaryReader, progress: Progress): void {
  while (reader.nextField() && !reader.isEndGroup()) {
    if (reader.getFieldNumber() === LOG_MESSAGE) progress.output += Buffer.from(reader.readBytes() as Uint8Array).toString();
    else reader.skipField();
  }
}
