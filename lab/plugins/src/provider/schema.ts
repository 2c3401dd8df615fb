// The properties a stand-in serves, as data. Checking inputs, finding differences and planning a preview all walk this description.
import { createHash, randomBytes } from "node:crypto";
import { UNKNOWN, isObject, type Props, type Value } from "./values";

export interface Field {
  type: "string" | "int" | "bool" | "map" | "list" | "set" | "object" | "any";
  /** Element of a list or set; strings when left out. */
  of?: Field;
  /** Properties of an object. */
  fields?: Fields;
  required?: boolean;
  /** The provider decides the value when the program does not: an unset input is then no difference. */
  computed?: boolean;
  /** Only an output; refused as an input. */
  output?: boolean;
  /** A change makes a new resource. Holds for everything inside that does not say otherwise. */
  replace?: boolean;
  default?: Value;
  /** Named after the resource with a random suffix when the program gives no name. */
  autoname?: boolean;
  /** An empty string means "as the image says" and is no difference. */
  emptyIsUnset?: boolean;
  pattern?: RegExp;
  /** Shown for an unset property in outputs; null when left out. */
  unset?: Value;
}
export type Fields = Record<string, Field>;

export interface Failure {
  property: string;
  reason: string;
}

export interface Owner {
  /** The plugin's name, as in "docker stand-in". */
  plugin: string;
  type: string;
  /** The resource's name in the program. */
  name: string;
  /** From the engine; the same in preview and update, so that an invented name is too. */
  seed?: Uint8Array;
}

const text: Field = { type: "string" };

/** Inputs with defaults filled in (their names listed under `__defaults`, as the genuine plugin does), and what is wrong with them. */
export function checkInputs(fields: Fields, olds: Props, news: Props, owner: Owner): { inputs: Props; failures: Failure[] } {
  const failures: Failure[] = [];
  const inputs = checkObject(fields, news, "", owner, failures);
  for (const [key, field] of Object.entries(fields)) {
    if (!field.autoname || key in inputs) continue;
    const kept = Array.isArray(olds.__defaults) && olds.__defaults.includes(key) ? olds[key] : undefined;
    inputs[key] = kept ?? `${owner.name}-${suffix(owner.seed)}`;
    inputs.__defaults = [...(inputs.__defaults as string[]), key].sort();
  }
  return { inputs, failures };
}

function suffix(seed?: Uint8Array): string {
  return (seed?.length ? createHash("sha256").update(seed).digest("hex") : randomBytes(4).toString("hex")).slice(0, 7);
}

function checkObject(fields: Fields, news: Props, path: string, owner: Owner, failures: Failure[]): Props {
  const checked: Props = {};
  const defaults: string[] = [];
  for (const [key, value] of Object.entries(news)) {
    if (key.startsWith("__") || value === null) continue;
    const field = fields[key];
    const where = path ? `${path}.${key}` : key;
    if (!field || field.output) {
      failures.push({ property: where, reason: `${owner.plugin} stand-in: property '${where}' of ${owner.type} is not supported by the lab stand-in; use the genuine plugin` });
    } else {
      checked[key] = checkValue(field, value, where, owner, failures);
    }
  }
  for (const [key, field] of Object.entries(fields)) {
    if (key in checked) continue;
    if (field.default !== undefined) {
      checked[key] = field.default;
      defaults.push(key);
    } else if (field.required) {
      const where = path ? `${path}.${key}` : key;
      failures.push({ property: where, reason: `${owner.plugin} stand-in: property '${where}' of ${owner.type} is missing` });
    }
  }
  return { __defaults: defaults.sort(), ...checked };
}

function checkValue(field: Field, value: Value, path: string, owner: Owner, failures: Failure[]): Value {
  if (value === UNKNOWN) return value;
  const expected = (what: string): Value => {
    failures.push({ property: path, reason: `${owner.plugin} stand-in: property '${path}' of ${owner.type} must be ${what}, not ${kindOf(value)}` });
    return value;
  };
  switch (field.type) {
    case "string":
      if (typeof value !== "string") return expected("a string");
      if (field.pattern && !field.pattern.test(value)) return expected(`one that matches ${field.pattern.source}`);
      return value;
    case "int":
      return Number.isInteger(value) ? value : expected("a whole number");
    case "bool":
      return typeof value === "boolean" ? value : expected("true or false");
    case "map":
      if (!isObject(value)) return expected("an object of strings");
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, checkValue(text, inner, `${path}.${key}`, owner, failures)]));
    case "any":
      return value;
    case "object":
      return isObject(value) ? checkObject(field.fields ?? {}, value, path, owner, failures) : expected("an object");
    case "list":
    case "set":
      if (!Array.isArray(value)) return expected("a list");
      return value.map((inner, i) => checkValue(field.of ?? text, inner, `${path}[${i}]`, owner, failures));
  }
}

function kindOf(value: Value): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return isObject(value) ? "an object" : `the ${typeof value} given`;
}

/** A checked input as it stands in outputs: every property of every object is present, the marks of defaults are gone. */
export function asOutput(field: Field, value: Value): Value {
  if (value === UNKNOWN) return value;
  if (Array.isArray(value)) return value.map((inner) => asOutput(field.of ?? text, inner));
  if (!isObject(value) || field.type !== "object") return value;
  return Object.fromEntries(
    Object.entries(field.fields ?? {}).map(([key, inner]) => {
      const given = value[key];
      return [key, given === undefined || given === null ? unsetOutput(inner) : asOutput(inner, given)];
    }),
  );
}

function unsetOutput(field: Field): Value {
  if (field.unset !== undefined) return field.unset;
  return field.type === "list" || field.type === "set" ? [] : null;
}

/** What a preview shows: given inputs, what is known of a resource that exists, unknown for the rest that the provider decides. */
export function planOutputs(fields: Fields, inputs: Props, olds?: Props): Props {
  return Object.fromEntries(
    Object.entries(fields).map(([key, field]) => {
      const given = inputs[key];
      if (given !== undefined && given !== null) return [key, asOutput(field, given)];
      if (field.computed || field.output) return [key, olds ? (olds[key] ?? null) : UNKNOWN];
      return [key, unsetOutput(field)];
    }),
  );
}

/** The given inputs as outputs, and `unset` values for those left out that the provider does not decide. */
export function givenOutputs(fields: Fields, inputs: Props): Props {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([key, field]) => {
      const given = inputs[key];
      if (given !== undefined && given !== null) return [[key, asOutput(field, given)] as const];
      return field.output || field.computed || field.emptyIsUnset ? [] : [[key, unsetOutput(field)] as const];
    }),
  );
}
