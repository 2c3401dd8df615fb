import { describe, expect, it } from "vitest";
// @ts-expect-error a plain module without types
import { changedEnv, checkFlip, checkOutputs } from "./e2e-checks.mjs";

const verdict = (arm: string, verdict: string) => ({ arm, pattern: "p", expected: verdict, verdict, reason: "line" });
const good = {
  proof: "passed",
  verdicts: [verdict("pods", "FLAGGED"), verdict("pods", "CLEAR"), verdict("remote", "CLEAR"), verdict("remote", "FLAGGED")],
  evidence: Array.from({ length: 9 }, (_, i) => ({ check: `c${i}`, expected: "x", seen: "x", ok: true })),
  transport: "pods", tunnel: "network", model: "scripted", next: [],
};

describe("checkOutputs", () => {
  it("takes a passed proof", () => expect(checkOutputs(good)).toEqual([]));
  it.each([
    ["a failed proof", { proof: "failed" }],
    ["no outputs at all", { proof: undefined, verdicts: undefined, evidence: undefined }],
    ["an arm that is missing", { verdicts: good.verdicts.slice(0, 2) }],
    ["a verdict other than expected", { verdicts: [...good.verdicts, { ...verdict("remote", "FLAGGED"), expected: "CLEAR" }] }],
    ["a verdict without a reason", { verdicts: [...good.verdicts, { ...verdict("pods", "CLEAR"), reason: "" }] }],
    ["a red piece of evidence", { evidence: [...good.evidence, { check: "marker", expected: "a", seen: "b", ok: false }] }],
    ["too little evidence", { evidence: good.evidence.slice(0, 3) }],
    ["a missing output", { tunnel: undefined }],
  ])("refuses %s", (_, change) => expect(checkOutputs({ ...good, ...change })).not.toEqual([]));
});

const service = (env: object[]) => ({ inputs: { spec: { template: { spec: { containers: [{ env }] } } } } });
const step = (over: object = {}) => ({
  op: "update",
  urn: "urn:pulumi:lab::dialout::x$kubernetes:serving.knative.dev/v1:Service::serverless-harness",
  detailedDiff: { "spec.template.spec.containers[0].env[3]": {} },
  oldState: service([{ name: "A", value: "1" }, { name: "KAGENTI_SANDBOX_POOL_SELECTOR", value: "a" }]),
  newState: service([{ name: "A", value: "1" }, { name: "KAGENTI_SANDBOX_POOL_SELECTOR", value: "b" }, { name: "SH_REMOTE_SANDBOX", value: "1" }]),
  ...over,
});
const same = { op: "same", urn: "urn:pulumi:lab::dialout::docker:index/container:Container::worker" };

describe("checkFlip", () => {
  it("takes a change of the harness's env alone", () => {
    expect(checkFlip({ steps: [same, step()] })).toEqual([]);
    expect(changedEnv({ steps: [same, step()] })).toEqual(["KAGENTI_SANDBOX_POOL_SELECTOR", "SH_REMOTE_SANDBOX"]);
  });
  it.each([
    ["no change", [same]],
    ["a second resource", [step(), { ...same, op: "update" }]],
    ["a replacement", [step({ op: "replace" })]],
    ["another service", [step({ urn: "urn:x::serverless-harness-arm-pods" })]],
    ["a change outside env", [step({ detailedDiff: { "spec.template.spec.containers[0].image": {} } })]],
    ["another env entry", [step({ newState: service([{ name: "A", value: "2" }]) })]],
  ])("refuses %s", (_, steps) => expect(checkFlip({ steps })).not.toEqual([]));
});
