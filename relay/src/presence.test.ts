import { createLogger } from "@dialout/common";
import { Hello } from "@dialout/proto";
import { until } from "@dialout/common/testkit";
import { afterEach, describe, expect, it } from "vitest";
import { Presence } from "./presence";
import { presenceJson } from "./presence-record";
import type { PresenceStore } from "./presence-store";

/** A Redis in memory that can be away, or do what it is told and then not answer. */
class FakeStore implements PresenceStore {
  readonly records = new Map<string, string>();
  mode: "up" | "down" | "mute" = "up";
  calls = 0;
  private listeners: (() => void)[] = [];
  get up() {
    return this.mode === "up";
  }
  onUp(listener: () => void) {
    this.listeners.push(listener);
  }
  comeUp() {
    this.mode = "up";
    for (const l of this.listeners) l();
  }
  private async answer<T>(act: () => T): Promise<T> {
    this.calls++;
    if (this.mode === "down") throw new Error("ECONNREFUSED");
    const result = act();
    if (this.mode === "mute") throw new Error("Command timed out");
    return result;
  }
  all() {
    return this.answer(() => Object.fromEntries(this.records));
  }
  set(id: string, value: string) {
    return this.answer(() => void this.records.set(id, value));
  }
  refresh(id: string, value: string, lastWrittenMs: number, own: readonly string[]) {
    return this.answer(() => {
      const cur = this.records.get(id);
      if (cur !== undefined && !own.includes(cur) && (JSON.parse(cur) as { lastSeenMs: number }).lastSeenMs >= lastWrittenMs) return false;
      this.records.set(id, value);
      return true;
    });
  }
  remove(id: string, own: readonly string[]) {
    return this.answer(() => {
      if (own.includes(this.records.get(id) ?? "")) this.records.delete(id);
    });
  }
  close() {}
}

let time = 1000;
let presence: Presence;
const hello = (id: string, capacityMax = 1) => Hello.fromPartial({ sandboxId: id, capacityMax });
function make(store: FakeStore, addr?: string) {
  let failures = 0;
  presence = new Presence(store, addr, 3_600_000, { presenceFailures: { inc: () => failures++ } as never }, createLogger("t", "silent"), () => time++);
  return { presence, failures: () => failures };
}
afterEach(() => presence.stop(0));

describe("Presence", () => {
  it("writes on attach and removes on detach", async () => {
    const store = new FakeStore();
    make(store, "me:1").presence.attached(hello("a"));
    await until("written", () => store.records.has("a"));
    expect(store.records.get("a")).toContain('"relayAddr":"me:1"');
    presence.detached("a");
    await until("removed", () => !store.records.has("a"));
  });

  it("tries again until Redis is back, without holding anybody up", async () => {
    const store = new FakeStore();
    store.mode = "down";
    const { failures } = make(store);
    presence.attached(hello("a"));
    await until("a failure and a retry", () => failures() >= 2);
    store.mode = "up";
    await until("written", () => store.records.has("a"));
  });

  it("writes everything again when Redis comes back empty", async () => {
    const store = new FakeStore();
    make(store);
    presence.attached(hello("a"));
    await until("written", () => store.records.has("a"));
    store.records.clear();
    store.comeUp();
    await until("written again", () => store.records.has("a"));
  });

  it("removes also a record of which it never learned that it was written", async () => {
    const store = new FakeStore();
    store.mode = "mute";
    const { failures } = make(store);
    presence.attached(hello("a"));
    await until("written but unanswered", () => store.records.has("a") && failures() > 0);
    presence.detached("a");
    store.mode = "up";
    await until("removed", () => !store.records.has("a"));
  });

  it("leaves a record alone that another relay wrote after ours", async () => {
    const store = new FakeStore();
    make(store, "me:1");
    presence.attached(hello("a"));
    await until("written", () => store.records.has("a"));
    const theirs = presenceJson(hello("a"), time + 10_000, "other:1");
    store.records.set("a", theirs);
    const before = store.calls;
    store.comeUp();
    await until("a refresh", () => store.calls >= before + 2);
    presence.detached("a");
    await until("a removal", () => store.calls >= before + 3);
    expect(store.records.get("a")).toBe(theirs);
  });

  it("keeps the newest session's record through a takeover", async () => {
    const store = new FakeStore();
    make(store);
    presence.attached(hello("a", 1));
    presence.attached(hello("a", 2));
    await until("the second one's", () => store.records.get("a")?.includes('"capacityMax":2'));
    presence.detached("a");
    presence.attached(hello("a", 3));
    await until("the third one's", () => store.records.get("a")?.includes('"capacityMax":3'));
  });

  it("reaps at start what an earlier life left, not what is attached now, nor what others own", async () => {
    const store = new FakeStore();
    store.records.set("ghost", presenceJson(hello("ghost"), 5, "me:1"));
    store.records.set("theirs", presenceJson(hello("theirs"), 5, "other:1"));
    make(store, "me:1");
    presence.attached(hello("a"));
    store.comeUp();
    await until("reaped", () => !store.records.has("ghost"));
    expect([...store.records.keys()].sort()).toEqual(["a", "theirs"]);
  });

  it("has removed everything when it stops", async () => {
    const store = new FakeStore();
    make(store);
    presence.attached(hello("a"));
    presence.attached(hello("b"));
    await until("written", () => store.records.size === 2);
    presence.detached("a");
    presence.detached("b");
    await presence.stop(1000);
    expect(store.records.size).toBe(0);
  });
});
