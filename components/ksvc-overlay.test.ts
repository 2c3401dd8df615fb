import { describe, expect, it } from "vitest";
import { armEnv, arms, overlay, remoteEnv } from "./ksvc-overlay";
import { remoteSelector } from "./manifests/common";
import { harnessService } from "./manifests/harness";

const place = { namespace: "default" };
const base = harnessService(place, { image: "dev.local/h:1", kubectl: "/k" }, { name: "m", env: [] });
const env = (s: typeof base) => s.spec.template.spec.containers[0]!.env;
const named = (s: typeof base, name: string) => env(s).filter((e) => e.name === name);

describe("overlay", () => {
  it("replaces an entry in its place and appends what is new, in order", () => {
    const after = env(overlay(base, "x", [{ name: "SH_MODEL", value: "other" }, { name: "NEW", value: "1" }]));
    expect(after.map((e) => e.name)).toEqual([...env(base).map((e) => e.name), "NEW"]);
    expect(after.find((e) => e.name === "SH_MODEL")).toEqual({ name: "SH_MODEL", value: "other" });
  });

  it("passes everything else through as the same objects", () => {
    const after = overlay(base, "x", remoteEnv(place));
    const [was] = base.spec.template.spec.containers, [is] = after.spec.template.spec.containers;
    for (const key of ["volumeMounts", "securityContext", "resources", "readinessProbe"]) expect(is![key]).toBe(was![key]);
    expect(after.spec.template.spec.volumes).toBe(base.spec.template.spec.volumes);
    for (const name of ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]) expect(named(after, name)[0]).toBe(named(base, name)[0]);
  });

  it("does not touch its input, and twice is as once", () => {
    const before = JSON.stringify(base);
    const once = overlay(base, "x", remoteEnv(place));
    expect(overlay(once, "x", remoteEnv(place))).toEqual(once);
    expect(JSON.stringify(base)).toBe(before);
  });

  it("replaces a value by a reference as a whole, never mixing both", () => {
    const after = overlay(overlay(base, "x", [{ name: "SH_RELAY_EXEC_TOKEN", value: "plain" }]), "x", remoteEnv(place));
    expect(named(after, "SH_RELAY_EXEC_TOKEN")).toEqual([{ name: "SH_RELAY_EXEC_TOKEN", valueFrom: { secretKeyRef: { name: "sh-relay-token", key: "SH_RELAY_EXEC_TOKEN" } } }]);
  });
});

describe("arms", () => {
  const of = (arm: keyof typeof arms) => overlay(base, arms[arm].service, armEnv(place, arm));
  it("pods is the base under another name", () => expect(of("pods").spec).toEqual(base.spec));
  it("remote has the flag, the exec port and a selector that no pod has", () => {
    expect(named(of("remote"), "SH_REMOTE_SANDBOX")).toEqual([{ name: "SH_REMOTE_SANDBOX", value: "1" }]);
    expect(named(of("remote"), "SH_RELAY_ADDR")[0]!.value).toBe("sandbox-relay.default.svc:8444");
    expect(named(of("remote"), "KAGENTI_SANDBOX_POOL_SELECTOR")).toEqual([{ name: "KAGENTI_SANDBOX_POOL_SELECTOR", value: remoteSelector }]);
  });
  it("miswired differs from remote in the selector alone", () => {
    const differing = env(of("miswired")).filter((e, i) => JSON.stringify(e) !== JSON.stringify(env(of("remote"))[i]));
    expect(differing).toEqual([{ name: "KAGENTI_SANDBOX_POOL_SELECTOR", value: "sh.kagenti.io/sandbox-pool=default" }]);
  });
});
