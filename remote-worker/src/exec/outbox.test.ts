import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { Stream, type WorkerFrame } from "@dialout/proto";
import { Outbox, type Delivery } from "./outbox";
import { failure, outcomeOf } from "./outcome";

class Text {
  constructor(public text = "", public held = 0) {}
  get produced() {
    return this.text.length;
  }
  holds = (o: number) => o >= this.held;
  read = (o: number, max: number) => (o < this.held ? undefined : Buffer.from(this.text.slice(o, o + max)));
}

const END = (t = false) => outcomeOf({ code: 0 }, undefined, { stdoutBytes: 0, stderrBytes: 0, stdoutTruncated: t, stderrTruncated: false, durationMs: 0 });
let now = 0;
const setup = (extended = true) => {
  const frames: WorkerFrame[] = [];
  let room = Infinity;
  const sink = { extended, send: (f: WorkerFrame) => (frames.push(f), --room > 0) };
  const outbox = new Outbox(sink, () => now);
  const settle = async () => {
    for (let i = 0; i < 20; i++) await turn();
  };
  const shown = () => frames.map(({ msg: m }) => (m?.$case === "chunk" ? `${m.value.reqId}${m.value.stream === Stream.STREAM_STDERR ? "e" : "o"}${m.value.offset}:${m.value.data.length}` : m?.$case === "end" || m?.$case === "error" ? `${m.value.reqId}${m.$case}` : m?.$case));
  return { frames, outbox, settle, shown, limit: (n: number) => (room = n) };
};
const delivery = (reqId: bigint, out: Text, extra: Partial<Delivery> = {}): Delivery => ({
  reqId, sources: { stdout: out, stderr: new Text() }, sent: { stdout: 0, stderr: 0 }, credit: Infinity, held: false, replayed: false, textMarker: false, outcome: undefined, lastSentMs: -Infinity, ...extra,
});
const big = (n: number) => new Text("x".repeat(n));

describe("Outbox", () => {
  it("cuts at 32 KiB and ends with the outcome", async () => {
    const { outbox, settle, shown } = setup();
    outbox.add(delivery(1n, big(70_000), { outcome: END() }));
    await settle();
    expect(shown()).toEqual(["1o0:32768", "1o32768:32768", "1o65536:4464", "1end"]);
  });

  it("spends exactly its credit, waits, and goes on with more", async () => {
    const { outbox, settle, shown } = setup();
    const d = delivery(1n, big(50_000), { credit: 40_000, outcome: END() });
    outbox.add(d);
    await settle();
    expect(shown()).toEqual(["1o0:32768", "1o32768:7232"]);
    d.credit += 5_000;
    outbox.kick();
    await settle();
    expect(shown().slice(2)).toEqual(["1o40000:5000"]);
    d.credit += 1 << 20;
    outbox.kick();
    await settle();
    expect(shown().slice(3)).toEqual(["1o45000:5000", "1end"]);
  });

  it("after an abort leaves out what there is no credit for, and says so", async () => {
    const { outbox, settle, frames } = setup();
    const d = delivery(1n, big(50_000), { credit: 0 });
    outbox.add(d);
    await settle();
    Object.assign(d, { aborted: true, outcome: END() });
    outbox.kick();
    await settle();
    expect(frames).toMatchObject([{ msg: { $case: "end", value: { stdoutTruncated: true, stderrTruncated: false } } }]);
  });

  it("lets commands take turns, and one without credit holds up nobody", async () => {
    const { outbox, settle, shown } = setup();
    outbox.add(delivery(1n, big(100_000), { credit: 0 }));
    outbox.add(delivery(2n, big(65_536)));
    outbox.add(delivery(3n, big(65_536)));
    await settle();
    expect(shown()).toEqual(["2o0:32768", "3o0:32768", "2o32768:32768", "3o32768:32768"]);
  });

  it("stops when the stream is full and goes on when it has drained", async () => {
    const { outbox, settle, shown, limit } = setup();
    limit(2);
    outbox.add(delivery(1n, big(200_000)));
    await settle();
    expect(shown()).toHaveLength(2);
    limit(3);
    outbox.drained();
    await settle();
    expect(shown()).toHaveLength(5);
  });

  it("sends nothing of held output before the outcome", async () => {
    const { outbox, settle, shown } = setup();
    const d = delivery(1n, big(10), { held: true });
    outbox.add(d);
    await settle();
    expect(shown()).toEqual([]);
    d.outcome = END();
    outbox.kick();
    await settle();
    expect(shown()).toEqual(["1o0:10", "1end"]);
  });

  it("sends the first small piece at once and lets the next ones gather", async () => {
    const { outbox, settle, shown } = setup();
    const out = new Text("a");
    outbox.add(delivery(1n, out));
    await settle();
    expect(shown()).toEqual(["1o0:1"]);
    for (let i = 0; i < 50; i++) {
      out.text += "b";
      outbox.kick();
      await settle();
    }
    expect(shown()).toHaveLength(1);
    now += 5;
    outbox.kick();
    await settle();
    expect(shown()).toEqual(["1o0:1", "1o1:50"]);
  });

  it("adds the textual marker only for callers without truncation fields", async () => {
    for (const [textMarker, expected] of [[true, ["1o0:10", "1o10:19", "1end"]], [false, ["1o0:10", "1end"]]] as const) {
      const { outbox, settle, shown } = setup();
      outbox.add(delivery(1n, big(10), { outcome: END(true), textMarker }));
      await settle();
      expect(shown()).toEqual(expected);
    }
  });

  it("sends no offset to a base relay", async () => {
    const { outbox, settle, shown } = setup(false);
    outbox.add(delivery(1n, big(40_000), { outcome: END() }));
    await settle();
    expect(shown()).toEqual(["1o0:32768", "1o0:7232", "1end"]);
  });

  it("ends with output_lost when the source no longer has what is due", async () => {
    const { outbox, settle, frames } = setup();
    outbox.add(delivery(1n, new Text("x".repeat(100), 50), { outcome: END() }));
    await settle();
    expect(frames).toMatchObject([{ msg: { $case: "error", value: { code: "output_lost" } } }]);
  });

  it("sends nothing after it was closed or the delivery was replaced", async () => {
    const { outbox, settle, shown } = setup();
    const d = delivery(1n, big(10), { outcome: failure("timeout", "timeout:1") });
    outbox.add(d);
    outbox.remove(d);
    await settle();
    outbox.add(delivery(2n, big(10)));
    outbox.close();
    outbox.send({ msg: undefined });
    await settle();
    expect(shown()).toEqual([]);
  });
});
