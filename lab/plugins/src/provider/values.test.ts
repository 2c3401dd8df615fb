import { expect, test } from "vitest";
import { UNKNOWN, holdsSecret, holdsUnknown, isEmpty, reveal, secret, secretTexts, withoutSecrets } from "./values";

const output = (rest: object) => ({ "4dabf18193072939515e22adb298388d": "d0e6a833031e9bbcd3f4e8bde6ca49a4", ...rest });

test("secrets and outputs are unwrapped at any depth", () => {
  expect(reveal({ a: [secret({ b: secret("c") })], d: output({ value: 1 }), e: output({ dependencies: [] }) })).toEqual({ a: [{ b: "c" }], d: 1, e: UNKNOWN });
});

test("a mark is found wherever it is", () => {
  expect(holdsSecret({ a: [{ b: secret("x") }] })).toBe(true);
  expect(holdsSecret({ a: output({ value: 1, secret: true }) })).toBe(true);
  expect(holdsSecret({ a: output({ value: 1 }) })).toBe(false);
  expect(holdsUnknown([[UNKNOWN]])).toBe(true);
  expect(holdsUnknown(output({}))).toBe(true);
  expect(holdsUnknown({ a: "b" })).toBe(false);
});

test("messages lose every secret, the words of a secret script included", () => {
  const secrets = secretTexts({ environment: { TOKEN: secret("tok-1"), PORT: secret(12345) }, create: secret("login --password 'hunter2!'"), open: "visible" });
  expect(withoutSecrets("tok-1 and 12345, visible, hunter2! rejected", secrets)).toBe("[secret] and [secret], visible, [secret] rejected");
});

test("texts too short to be secrets are left alone", () => {
  expect(secretTexts(secret("ab"))).toEqual([]);
});

test("what nobody has set is empty", () => {
  for (const value of [undefined, null, "", 0, false, [], {}]) expect(isEmpty(value)).toBe(true);
  for (const value of ["a", 1, true, [0], { a: null }]) expect(isEmpty(value)).toBe(false);
});
