import { Exec, ExecRequest, ServerFrame } from "@dialout/proto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkExecRequest, execFrame } from "./exec-request";
import { Refusal } from "./status";

const bytes = (request: Parameters<typeof ExecRequest.fromPartial>[0]) => Buffer.from(ExecRequest.encode(ExecRequest.fromPartial(request)).finish());
const uuid = "0d9b7a52-4f44-4a3c-9a39-0c7f1c6f3b11";

describe("checkExecRequest", () => {
  it.each([
    ["no exec", bytes({ sandboxId: "a" }), /^ExecRequest missing exec field$/],
    ["a bad id", bytes({ sandboxId: "a b", exec: { reqId: 1n } }), /sandbox_id "a b"/],
    ["an id above 2^53-1", bytes({ sandboxId: "a", exec: { reqId: 2n ** 53n } }), /req_id 9007199254740992 must be at most 9007199254740991/],
    ["an exec_id that is no UUID", bytes({ sandboxId: "a", exec: { reqId: 1n, execId: "x" } }), /exec_id "x" must be a UUID/],
    ["garbage", Buffer.from([0xff]), /ExecRequest cannot be decoded/],
  ])("refuses %s", (_, request, message) => {
    expect(() => checkExecRequest(request as Buffer)).toThrow(Refusal);
    expect(() => checkExecRequest(request as Buffer)).toThrow(message);
  });

  it("answers any bytes with a request or a Refusal", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 80 }), (b) => {
      try {
        checkExecRequest(Buffer.from(b));
      } catch (e) {
        expect(e).toBeInstanceOf(Refusal);
      }
    }), { numRuns: 2000 });
  });
});

describe("execFrame", () => {
  const exec = Exec.fromPartial({ reqId: 1n, command: "c", stdin: Buffer.from("s"), timeoutS: 3, streaming: true, execId: uuid, journalId: "j", delivery: 2, resumeStdout: 5n, graceS: 9, traceparent: "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01" });
  const sent = (protocol: number, e = exec) => {
    const msg = ServerFrame.decode(execFrame(e, protocol, 1000)).msg;
    return msg?.$case === "exec" ? msg.value : undefined;
  };

  it("gives a base worker the base fields and nothing else", () => {
    expect(sent(0)).toEqual(Exec.fromPartial({ reqId: 1n, command: "c", stdin: Buffer.from("s"), timeoutS: 3, streaming: true }));
  });

  it("gives a protocol 1 worker everything and its window, whatever the caller put there", () => {
    expect(sent(1, { ...exec, window: 99n })).toEqual({ ...exec, window: 1000n });
  });

  it("leaves a malformed trace context out", () => {
    expect(sent(1, { ...exec, traceparent: "nonsense" })?.traceparent).toBe("");
  });
});
