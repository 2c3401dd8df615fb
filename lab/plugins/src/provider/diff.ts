// Differences between what a resource is (its outputs) and what the program wants (checked inputs).
import { isDeepStrictEqual } from "node:util";
import type { Field, Fields } from "./schema";
import { UNKNOWN, isEmpty, isObject, type Props, type Value } from "./values";

export type Kind = "add" | "update" | "delete";
export interface Change {
  /** As Pulumi writes paths: `build.buildArgs.WHO`, `command[1]`. */
  path: string;
  kind: Kind;
  replace: boolean;
}

const text: Field = { type: "string" };

export function diffProps(fields: Fields, olds: Props, news: Props): Change[] {
  return Object.entries(fields).flatMap(([key, field]) => (field.output ? [] : diffValue(field, olds[key], news[key], key, false)));
}

/** The first segment of a path: the property itself. */
export function propertyOf(path: string): string {
  return path.split(/[.[]/, 1)[0] ?? path;
}

/** A name that the program chose cannot be used twice, so the old resource has to go first. */
export function mustDeleteFirst(fields: Fields, olds: Props, news: Props): boolean {
  const named = Object.entries(fields).find(([, field]) => field.autoname)?.[0];
  if (!named) return false;
  const invented = Array.isArray(news.__defaults) && news.__defaults.includes(named);
  return !invented && olds[named] === news[named];
}

function diffValue(field: Field, old: Value | undefined, wanted: Value | undefined, path: string, inherited: boolean): Change[] {
  const replace = field.replace ?? inherited;
  const change = (kind: Kind, at = path): Change[] => [{ path: at, kind, replace }];
  if (wanted === undefined || wanted === null) {
    return field.computed || field.emptyIsUnset || isEmpty(old) ? [] : change("delete");
  }
  if (wanted === UNKNOWN) return change("update");
  if (isEmpty(wanted) && (isEmpty(old) || field.emptyIsUnset)) return [];
  if (isEmpty(old) && typeof wanted === "object") return change("add");
  if (isEmpty(wanted) && typeof wanted === "object") return change("delete");
  switch (field.type) {
    case "map":
      return diffMap(old as Props, wanted as Props, path, replace);
    case "object":
      return Object.entries(field.fields ?? {}).flatMap(([key, inner]) =>
        diffValue(inner, isObject(old) ? old[key] : undefined, (wanted as Props)[key], `${path}.${key}`, replace),
      );
    case "list":
      return diffList(field, asList(old), asList(wanted), path, replace);
    case "set":
      return diffSet(field.of ?? text, asList(old), asList(wanted), path, replace);
    case "any":
      return isDeepStrictEqual(old, wanted) ? [] : change("update");
    default:
      return old === wanted ? [] : change(isEmpty(old) ? "add" : "update");
  }
}

function asList(value: Value | undefined): Value[] {
  return Array.isArray(value) ? value : [];
}

function diffMap(old: Props, wanted: Props, path: string, replace: boolean): Change[] {
  const keys = [...new Set([...Object.keys(old), ...Object.keys(wanted)])].sort();
  return keys.flatMap((key): Change[] => {
    const at = /^[\w-]+$/.test(key) ? `${path}.${key}` : `${path}["${key}"]`;
    if (!(key in wanted)) return [{ path: at, kind: "delete", replace }];
    if (!(key in old)) return [{ path: at, kind: "add", replace }];
    return old[key] === wanted[key] ? [] : [{ path: at, kind: "update", replace }];
  });
}

function diffList(field: Field, old: Value[], wanted: Value[], path: string, replace: boolean): Change[] {
  return Array.from({ length: Math.max(old.length, wanted.length) }).flatMap((_, i): Change[] => {
    const at = `${path}[${i}]`;
    if (i >= wanted.length) return [{ path: at, kind: "delete", replace }];
    if (i >= old.length) return [{ path: at, kind: "add", replace }];
    return diffValue(field.of ?? text, old[i], wanted[i], at, replace);
  });
}

// Order means nothing in a set; an element at the same place on both sides is shown as one update.
function diffSet(element: Field, old: Value[], wanted: Value[], path: string, replace: boolean): Change[] {
  const canonical = (value: Value): string => JSON.stringify(strip(element, value));
  const [before, after] = [old.map(canonical), wanted.map(canonical)];
  if (after.some((one) => one.includes(UNKNOWN))) return [{ path, kind: "update", replace }];
  const gone = before.flatMap((one, i) => (after.includes(one) ? [] : [i]));
  const added = after.flatMap((one, i) => (before.includes(one) ? [] : [i]));
  return [
    ...gone.map((i): Change => ({ path: `${path}[${i}]`, kind: added.includes(i) ? "update" : "delete", replace })),
    ...added.filter((i) => !gone.includes(i)).map((i): Change => ({ path: `${path}[${i}]`, kind: "add", replace })),
  ];
}

/** Without empty properties and default marks, keys in the order of the description, inner sets sorted. */
function strip(field: Field, value: Value): Value {
  if (Array.isArray(value)) {
    const inner = value.map((one) => strip(field.of ?? text, one));
    return field.type === "set" ? inner.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : inner;
  }
  if (!isObject(value) || field.type !== "object") return value;
  return Object.fromEntries(
    Object.entries(field.fields ?? {}).flatMap(([key, inner]) => {
      const given = value[key];
      return given === undefined || isEmpty(given) ? [] : [[key, strip(inner, given)] as const];
    }),
  );
}
