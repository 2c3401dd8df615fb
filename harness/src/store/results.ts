import type { LeafResult } from "../leaf/result";
import type { Store } from "./redis";

/** Stored results, `leaf:result:<sid>`, as compact JSON with the response's own fields. */
export class Results {
  constructor(private readonly store: Store, private readonly ttlS: number) {}

  /** `ifAbsent`: an answer that says less than the record that is already there must not replace it. */
  put(sid: string, result: LeafResult, ifAbsent = false): Promise<void> {
    const key = `leaf:result:${sid}`;
    const json = JSON.stringify(result);
    return this.store.run(async (r) => void (await (ifAbsent ? r.set(key, json, "EX", this.ttlS, "NX") : r.set(key, json, "EX", this.ttlS))));
  }

  /** The record as it was stored, or undefined when there is none (or none that is an object with a status). */
  async get(sid: string): Promise<Record<string, unknown> | undefined> {
    const text = await this.store.run((r) => r.get(`leaf:result:${sid}`));
    if (text === null) return undefined;
    try {
      const value: unknown = JSON.parse(text);
      return typeof value === "object" && value !== null && "status" in value ? (value as Record<string, unknown>) : undefined;
    } catch {
      return undefined;
    }
  }
}
