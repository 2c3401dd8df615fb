import { createLogger } from "@dialout/common";
import { Hello, ServerFrame } from "@dialout/proto";
import { describe, expect, it } from "vitest";
import { Metrics } from "./metrics";
import { BASE_DEADLINE_MS, SessionRegistry, deadlineOf } from "./registry";
import { WorkerSession } from "./session";
import type { Refusal } from "./status";

const meter = { bytes: 0, routes: 0 };
const metrics = new Metrics({ attached: () => 0, inFlight: () => 0, queue: meter, redisUp: () => true });
const limits = { windowBytes: 65_536, legacyBufferBytes: 65_536, baseMaxMessageBytes: 65_536, maxMessageBytes: 65_536 };

function session(id: string, now = 0, protocol = 1) {
  const frames: (string | undefined)[] = [];
  const ends: (Refusal | undefined)[] = [];
  const link = { queued: 0, send: (b: Buffer) => void frames.push(ServerFrame.decode(b).msg?.$case), end: (r: Refusal | undefined) => void ends.push(r) };
  const s = new WorkerSession(Hello.fromPartial({ sandboxId: id, capacityMax: 1, protocol }), link, limits, meter, metrics, createLogger("t", "silent"), now);
  return { s, frames, ends };
}
const live = { heartbeatMs: 1000, deadlineMs: 3000 };

describe("SessionRegistry", () => {
  it("lets the newest session win and tells the older why", () => {
    const registry = new SessionRegistry(live, 10, 0);
    const [a, b] = [session("x"), session("x")];
    registry.add(a.s);
    registry.add(b.s);
    expect(registry.get("x")).toBe(b.s);
    expect(a.ends[0]?.details).toMatch(/^superseded/);
    expect(registry.remove(a.s)).toBe(false);
    expect(registry.remove(b.s)).toBe(true);
  });

  it("bounds the number of ids, but not takeovers", () => {
    const registry = new SessionRegistry(live, 1, 0);
    registry.add(session("x").s);
    expect(() => registry.admit("y")).toThrow(/too many workers/);
    expect(() => registry.admit("x")).not.toThrow();
  });

  it("sends due heartbeats, to protocol 1 workers only, and ends who is silent", () => {
    const registry = new SessionRegistry(live, 10, 0);
    const [a, base] = [session("a"), session("b", 0, 0)];
    registry.add(a.s);
    registry.add(base.s);
    const ended: string[] = [];
    for (let t = 250; t <= 3500; t += 250) registry.sweep(t, (s, why) => ended.push(`${s.id} ${why.reason} ${t}`));
    expect(a.frames.filter((f) => f === "heartbeat")).toHaveLength(3);
    expect(base.frames).toEqual([]);
    // The registry forgets a session when its stream is gone; until then ending it again changes nothing.
    expect(ended[0]).toBe("a liveness 3250");
    expect(a.ends).toHaveLength(1);
  });

  it("gives everybody time after the process itself was stopped", () => {
    const registry = new SessionRegistry(live, 10, 0);
    registry.add(session("a").s);
    const ended: unknown[] = [];
    registry.sweep(60_000, (s) => ended.push(s));
    expect(ended).toEqual([]);
    expect(registry.get("a")?.lastFrameAt).toBe(60_000);
  });

  it("holds a base worker to the heartbeat only once it sends some, and never to less than it knows of", () => {
    expect(deadlineOf({ base: true, sentHeartbeat: false }, 3000)).toBe(Infinity);
    expect(deadlineOf({ base: true, sentHeartbeat: true }, 3000)).toBe(BASE_DEADLINE_MS);
    expect(deadlineOf({ base: false, sentHeartbeat: false }, 3000)).toBe(3000);
  });
});
