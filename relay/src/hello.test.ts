import { Hello } from "@dialout/proto";
import { expect, it } from "vitest";
import { checkHello, checkSandboxId } from "./hello";
import { Refusal } from "./status";

const hello = (fields: Partial<Hello>) => Hello.fromPartial({ sandboxId: "a", capacityMax: 1, ...fields });

it.each([
  [{ capacityMax: 0 }, /capacity_max 0 must be from 1 to 1024/],
  [{ capacityMax: 5000 }, /capacity_max 5000/],
  [{ labels: { k: "x".repeat(300) } }, /a label's value .* at most 256/],
  [{ labels: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, ""])) }, /65 labels: the limit is 64/],
  [{ capabilities: Array.from({ length: 257 }, () => "x") }, /257 capabilities/],
  [{ journalId: "j".repeat(257) }, /journal_id/],
])("refuses %j", (fields, message) => {
  expect(() => checkHello(hello(fields as Partial<Hello>))).toThrow(Refusal);
  expect(() => checkHello(hello(fields as Partial<Hello>))).toThrow(message);
});

it("takes the reference worker's Hello", () => {
  expect(() => checkHello(hello({ capabilities: ["bash"], trust: "untrusted", arch: "amd64", capacityMax: 4 }))).not.toThrow();
});

it.each(["", "a b", "-a", "../x", "a".repeat(64)])("refuses id %j by its rule", (id) => {
  expect(() => checkSandboxId(id)).toThrow(/sandbox_id .* must be 1 to 63 characters/);
});
