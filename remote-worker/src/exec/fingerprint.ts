import { createHash } from "node:crypto";

/** SHA-256 over length-prefixed command, stdin, timeout and streaming: tells whether two requests under one id are the same. */
export function fingerprint(exec: { command: string; stdin: Uint8Array; timeoutS: number; streaming: boolean }): string {
  const h = createHash("sha256");
  for (const part of [Buffer.from(exec.command, "utf8"), exec.stdin, Buffer.from(String(exec.timeoutS)), Buffer.from(exec.streaming ? "1" : "0")]) {
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(part.length));
    h.update(length).update(part);
  }
  return h.digest("hex");
}
