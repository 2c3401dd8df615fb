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

/** Whether a property counts as set. */
export type IsUnset = (value: Value | undefined) => boolean;
/** For a provider that tells `false` from nothing. */
export const missing: IsUnset = (value) => value === undefined || value === null;

/** @param isUnset by default nothing, zero, false and empty are one, as in Terraform's providers */
export function diffProps(fields: Fields, olds: Props, news: Props, isUnset: IsUnset = isEmpty): Change[] {
  const walk = new Walk(isUnset);
  return Object.entries(fields).flatMap(([key, field]) => (field.output ? [] : walk.value(field, olds[key], news[key], key, false)));
}

/** The first segment of a path: the property itself. */
export function propertyOf(path: string): string {
  return path.split(/[.[]/, 1)[0] ?? path;
}

class Walk {
  constructor(private readonly isUnset: IsUnset) {}

  value(field: Field, old: Value | undefined, wanted: Value | undefined, path: string, inherited: boolean): Change[] {
    const replace = field.replace ?? inherited;
    const change = (kind: Kind): Change[] => [{ path, kind, replace }];
    if (wanted === undefined || wanted === null) {
      if (field.computed || field.emptyIsUnset || this.isUnset(old)) return [];
      // one with a value of its own for "unset" goes back to that
      return change(field.unset === undefined ? "delete" : "update");
    }
    if (wanted === UNKNOWN) return change("update");
    if (this.isUnset(wanted) && (this.isUnset(old) || field.emptyIsUnset)) return [];
    if (typeof wanted === "object") {
      if (this.isUnset(old)) return change("add");
      if (this.isUnset(wanted)) return change("delete");
    }
    switch (field.type) {
      case "map":
        return diffMap(old as Props, wanted as Props, path, replace);
      case "object":
        return Object.entries(field.fields ?? {}).flatMap(([key, inner]) =>
          this.value(inner, isObject(old) ? old[key] : undefined, (wanted as Props)[key], `${path}.${key}`, replace),
        );
      case "list":
        return this.list(field.of ?? text, asList(old), asList(wanted), path, replace);
      case "set":
        return sameSet(field, old, wanted) ? [] : change("update");
      case "any":
        return isDeepStrictEqual(old, wanted) ? [] : change("update");
      default:
        return old === wanted ? [] : change(missing(old) ? "add" : "update");
    }
  }

  private list(element: Field, old: Value[], wanted: Value[], path: string, replace: boolean): Change[] {
    return Array.from({ length: Math.max(old.length, wanted.length) }).flatMap((_, i): Change[] => {
      const at = `${path}[${i}]`;
      if (i >= wanted.length) return [{ path: at, kind: "delete", replace }];
      if (i >= old.length) return [{ path: at, kind: "add", replace }];
      return this.value(element, old[i], wanted[i], at, replace);
    });
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

// Order means nothing in a set. An unknown inside is never equal to what is known.
function sameSet(field: Field, old: Value | undefined, wanted: Value): boolean {
  return JSON.stringify(strip(field, asList(old))) === JSON.stringify(strip(field, wanted));
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
