import { SANDBOX_ID, SANDBOX_ID_RULE, show } from "@dialout/common";
import type { Hello } from "@dialout/proto";
import { refuse } from "./status";

export const MAX_CAPACITY = 1024;
const MAX_LABELS = 64;
const MAX_CAPABILITIES = 256;
const MAX_TEXT = 256;

/** Checked before the token, because the id chooses the token. Throws a Refusal. */
export function checkSandboxId(id: string): void {
  if (!SANDBOX_ID.test(id)) throw refuse.invalid(`sandbox_id ${show(id)} must be ${SANDBOX_ID_RULE}`);
}

/** Checked after the token: what an attached worker may announce. Throws a Refusal that names value and rule. */
export function checkHello(hello: Hello): void {
  if (hello.capacityMax < 1 || hello.capacityMax > MAX_CAPACITY) {
    throw refuse.invalid(`capacity_max ${hello.capacityMax} must be from 1 to ${MAX_CAPACITY}`);
  }
  const labels = Object.entries(hello.labels);
  atMost("labels", labels.length, MAX_LABELS);
  atMost("capabilities", hello.capabilities.length, MAX_CAPABILITIES);
  for (const [key, value] of labels) {
    text("a label's key", key);
    text("a label's value", value);
  }
  for (const capability of hello.capabilities) text("a capability", capability);
  for (const [name, value] of Object.entries({ image: hello.image, arch: hello.arch, trust: hello.trust, instance_id: hello.instanceId, journal_id: hello.journalId })) text(name, value);
}

function atMost(what: string, count: number, max: number): void {
  if (count > max) throw refuse.invalid(`${count} ${what}: the limit is ${max}`);
}

function text(what: string, value: string): void {
  if (value.length > MAX_TEXT) throw refuse.invalid(`${what} ${show(value)} must be at most ${MAX_TEXT} characters`);
}
