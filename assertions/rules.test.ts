import { describe, expect, it } from "vitest";
import { leafProblems, miswiredProblems, presenceProblems, readAnswer, strangerProblems, tell, type Expectation, type LeafAnswer } from "./rules";

const want: Expectation = {
  itemId: "item-1",
  verdict: "FLAGGED",
  sandbox: { kind: "remote", names: ["sbx-1"] },
  pattern: "Red Hat",
  quotes: ['PRETTY_NAME="Red Hat Enterprise Linux 9.8 (Plow)"', "Red Hat Enterprise Linux 9.8 (Plow)", "Red Hat"],
  foreign: ["Alpine Linux v3.20"],
  scripted: true,
};
const good: LeafAnswer = {
  status: "done", itemId: "item-1", verdict: "FLAGGED", reason: 'line 5: PRETTY_NAME="Red Hat Enterprise Linux 9.8 (Plow)"',
  sandbox: { kind: "remote", name: "sbx-1" }, scripted: true, raw: "", execIds: [], elapsedMs: 1,
};

describe("leafProblems", () => {
  it("believes an answer in which verdict, place, item and reason agree", () => {
    expect(leafProblems(good, want)).toEqual([]);
  });

  it.each<[string, Partial<LeafAnswer>, RegExp]>([
    ["another item: a replay", { itemId: "item-0" }, /old answer/],
    ["no item", { itemId: undefined }, /old answer/],
    ["the other verdict", { verdict: "CLEAR" }, /verdict CLEAR, expected FLAGGED/],
    ["an unknown verdict", { verdict: "flagged" }, /verdict flagged/],
    ["no verdict", { verdict: undefined }, /verdict missing/],
    ["right verdict, wrong kind of sandbox", { sandbox: { kind: "pod", name: "sbx-1" } }, /ran in pod\/sbx-1/],
    ["right verdict, somebody else's worker", { sandbox: { kind: "remote", name: "sbx-2" } }, /not one of ours/],
    ["no sandbox", { sandbox: undefined }, /does not say where/],
    ["the harness's own container", { sandbox: { kind: "local", name: "" } }, /ran in local\//],
    ["no reason", { reason: undefined }, /reason is empty/],
    ["a blank reason", { reason: " \n" }, /reason is empty/],
    ["a reason that only repeats the prompt's pattern", { reason: "it contains Red Hat" }, /quotes nothing/],
    ["a reason about a file that could not be read", { reason: "the file could not be read" }, /quotes nothing/],
    ["a reason that quotes both sides", { reason: `${good.reason} and Alpine Linux v3.20` }, /other side's file: Alpine Linux v3.20/],
    ["a script where a model was promised", { scripted: false }, /answered by a model, labelled as a script/],
    ["a failed leaf", { status: "failed", failure: "no_verdict" }, /ended as 'failed': no_verdict/],
    ["a leaf put off", { status: "accepted" }, /ended as 'accepted'/],
  ])("does not believe %s", (_what, change, why) => {
    const problems = leafProblems({ ...good, ...change }, want);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(why);
  });

  it("takes a harness that says nothing about its model", () => {
    expect(leafProblems({ ...good, scripted: undefined }, want)).toEqual([]);
  });

  it("lets a model write that it is not the other system", () => {
    const clear = { ...want, verdict: "CLEAR" as const, pattern: "Alpine" };
    expect(leafProblems({ ...good, verdict: "CLEAR", reason: "Red Hat Enterprise Linux 9.8 (Plow), not Alpine Linux" }, clear)).toEqual([]);
  });
});

describe("readAnswer", () => {
  it.each(["", "not json", "null", "[]", '"text"', "{}", '{"status":7,"verdict":"FLAGGED","sandbox":"pod"}', '{"verdict":{"reason":{}}}'])("takes %j without believing it", (body) => {
    expect(leafProblems(readAnswer({ status: 200, body, elapsedMs: 1 }), want).length).toBeGreaterThan(0);
  });

  it("does not take an error page for an answer, whatever it holds", () => {
    const body = JSON.stringify({ status: "done", verdict: { item_id: "item-1", verdict: "FLAGGED", reason: good.reason }, sandbox: good.sandbox });
    expect(leafProblems(readAnswer({ status: 200, body, elapsedMs: 1 }), want)).toEqual([]);
    expect(leafProblems(readAnswer({ status: 500, body, elapsedMs: 1 }), want)[0]).toMatch(/HTTP 500/);
  });

  it("says why a leaf failed, in one line", () => {
    const body = JSON.stringify({ status: "failed", reason: "error", message: "401 from the model", sandbox: { kind: "pod", name: "p" } });
    expect(tell(readAnswer({ status: 200, body, elapsedMs: 9 }))).toBe("failed from pod/p: error: 401 from the model [9 ms]");
  });
});

describe("the miswired control", () => {
  const asPod: Expectation = { ...want, sandbox: { kind: "pod", names: ["pool-0"] }, pattern: "Alpine", quotes: ["Alpine Linux v3.20"], foreign: [] };
  const asRemote: Expectation = { ...want, verdict: "CLEAR", pattern: "Alpine" };
  const onPod: LeafAnswer = { ...good, sandbox: { kind: "pod", name: "pool-0" }, reason: "Alpine Linux v3.20" };

  it("is caught when it lands on a pod", () => {
    expect(miswiredProblems(onPod, asRemote, asPod)).toEqual([]);
  });
  it("fails when the rules would have believed it", () => {
    const fooled = { ...good, verdict: "CLEAR" };
    expect(miswiredProblems(fooled, asRemote, asPod)[0]).toMatch(/believe anything/);
  });
  it("fails when it went wrong for another reason than the one it should show", () => {
    expect(miswiredProblems({ ...onPod, status: "failed", failure: "error" }, asRemote, asPod).length).toBeGreaterThan(0);
    expect(miswiredProblems({ ...onPod, sandbox: { kind: "pod", name: "stranger" } }, asRemote, asPod).length).toBeGreaterThan(0);
  });
});

describe("strangerProblems", () => {
  const pod = { kind: "pod" as const, names: ["pool-0"] };
  const noVerdict: LeafAnswer = { status: "failed", failure: "no_verdict: not readable", sandbox: { kind: "pod", name: "pool-0" }, execIds: [], raw: "{}", elapsedMs: 1 };
  it.each<[string, Partial<LeafAnswer>]>([["no verdict", {}], ["CLEAR", { status: "done", verdict: "CLEAR", failure: undefined }]])("is content with %s", (_w, change) => {
    expect(strangerProblems({ ...noVerdict, ...change }, "s3cret", pod)).toEqual([]);
  });
  it.each<[string, Partial<LeafAnswer>, RegExp]>([
    ["the secret anywhere in the answer", { raw: '{"tools":["s3cret"]}' }, /knows the marker/],
    ["FLAGGED", { status: "done", verdict: "FLAGGED", failure: undefined }, /claims to have found/],
    ["the worker", { sandbox: { kind: "remote", name: "sbx-1" } }, /ran in remote/],
    ["no place", { sandbox: undefined }, /does not say where/],
    ["a leaf that broke before it looked", { failure: "error: model away" }, /says nothing about the file/],
    ["a saturated pool", { status: "HTTP 503", failure: "saturated" }, /says nothing about the file/],
  ])("objects to %s", (_w, change, why) => {
    expect(strangerProblems({ ...noVerdict, ...change }, "s3cret", pod)[0]).toMatch(why);
  });
});

describe("presenceProblems", () => {
  const record = (change: Record<string, unknown> = {}) => JSON.stringify({ sandboxId: "sbx-1", transport: "grpc", lastSeenMs: 1_000_000, ...change });
  it.each([0, 59_000, -4_000])("takes a record that is %i ms old", (age) => {
    expect(presenceProblems(record(), "sbx-1", 1_000_000 + age)).toEqual([]);
  });
  it.each<[string, string | undefined, number, RegExp]>([
    ["no record", undefined, 0, /not attached/],
    ["no JSON", "{", 0, /not JSON/],
    ["null", "null", 0, /lastSeenMs/],
    ["another id", record({ sandboxId: "sbx-2" }), 0, /of "sbx-2"/],
    ["another transport", record({ transport: "http" }), 0, /not "grpc"/],
    ["no time", record({ lastSeenMs: undefined }), 0, /ghost/],
    ["a time that is text", record({ lastSeenMs: "1000000" }), 0, /ghost/],
    ["an old time", record(), 61_000, /61 s ago: a ghost/],
    ["a time to come", record(), -60_000, /60 s in the future/],
  ])("does not take %s", (_w, raw, age, why) => {
    expect(presenceProblems(raw, "sbx-1", 1_000_000 + age).join("; ")).toMatch(why);
  });
});
