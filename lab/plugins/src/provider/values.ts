// Property values as they travel in the provider protocol: plain JSON in which unknown and secret values are marked by signatures
// that Pulumi fixed.

export type Value = null | boolean | number | string | Value[] | { [key: string]: Value };
export type Props = { [key: string]: Value };

/** Stands for a value that a preview cannot know yet. */
export const UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
const SIGNATURE = "4dabf18193072939515e22adb298388d";
const SECRET = "1b47061264138c4ac30d75fd1eb44270";
const OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4";

export function isObject(value: Value | undefined): value is Props {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isMarked(value: Value, signature: string): boolean {
  return isObject(value) && value[SIGNATURE] === signature;
}

export function secret(value: Value): Value {
  return { [SIGNATURE]: SECRET, value };
}

/** The value with every secret and output mark taken off, at any depth. An output without a value is unknown. */
export function reveal(value: Value): Value {
  if (Array.isArray(value)) return value.map(reveal);
  if (!isObject(value)) return value;
  if (isMarked(value, SECRET)) return reveal(value.value ?? null);
  if (isMarked(value, OUTPUT)) return "value" in value ? reveal(value.value ?? null) : UNKNOWN;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, reveal(inner)]));
}

export function revealProps(props: Props): Props {
  return reveal(props) as Props;
}

/** Whether a secret is anywhere inside. */
export function holdsSecret(value: Value): boolean {
  return some(value, (inner) => isMarked(inner, SECRET) || (isMarked(inner, OUTPUT) && isObject(inner) && inner.secret === true));
}

/** Whether an unknown is anywhere inside. */
export function holdsUnknown(value: Value): boolean {
  return some(value, (inner) => inner === UNKNOWN || (isMarked(inner, OUTPUT) && isObject(inner) && !("value" in inner)));
}

function some(value: Value, test: (value: Value) => boolean): boolean {
  if (test(value)) return true;
  if (Array.isArray(value)) return value.some((inner) => some(inner, test));
  return isObject(value) && Object.values(value).some((inner) => some(inner, test));
}

/**
 * Every text that a secret mark covers, longest first, for taking them out of messages. A secret script is not only secret as a whole:
 * its words of 6 and more characters are in the list as well. Texts under 3 characters would blot out everything.
 */
export function secretTexts(value: Value): string[] {
  const found = new Set<string>();
  const collect = (inner: Value): void => {
    if (typeof inner === "string") found.add(inner);
    else if (typeof inner === "number") found.add(String(inner));
    else if (Array.isArray(inner)) inner.forEach(collect);
    else if (isObject(inner)) Object.values(inner).forEach(collect);
  };
  const walk = (inner: Value): void => {
    if (isMarked(inner, SECRET) || (isMarked(inner, OUTPUT) && isObject(inner) && inner.secret === true)) collect(reveal(inner));
    else if (Array.isArray(inner)) inner.forEach(walk);
    else if (isObject(inner)) Object.values(inner).forEach(walk);
  };
  walk(value);
  const texts = [...found].flatMap((text) => [text, text.trim(), ...text.split(/[\s"'`=;|&<>()]+/).filter((word) => word.length >= 6)]);
  return [...new Set(texts)].filter((text) => text.length >= 3).sort((a, b) => b.length - a.length);
}

export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, one) => rest.replaceAll(one, "[secret]"), text);
}

/** null, "", 0, false, [] and {}: what a property holds when nobody has set it. */
export function isEmpty(value: Value | undefined): boolean {
  if (value === undefined || value === null || value === "" || value === 0 || value === false) return true;
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;
}
