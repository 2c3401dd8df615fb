import { describe, expect, test } from "vitest";
import { type KIngress, type Path, CLASS_ANNOTATION, buildTable, isOurs, isReady, readyStatus, route } from "./routes.ts";

const path = (service: string, more: Partial<Path> = {}): Path => ({ splits: [{ serviceName: service, serviceNamespace: "ns", servicePort: 80, percent: 100 }], ...more });
const ingress = (hosts: string[], paths: Path[], more: Partial<KIngress["metadata"]> = {}): KIngress => ({
  metadata: { name: "svc", namespace: "ns", generation: 2, annotations: { [CLASS_ANNOTATION]: "lab" }, ...more },
  spec: { rules: [{ hosts, http: { paths } }] },
});
const to = (table: ReturnType<typeof buildTable>, host: string | undefined, url = "/", headers: Record<string, string> = {}, random = 0) => route(table, host, url, (n) => headers[n], random);

describe("routes", () => {
  test("go by host name, whatever its case and port", () => {
    const table = buildTable([ingress(["Svc.ns.example.com", "svc.ns"], [path("rev-1")])]);
    expect(to(table, "SVC.ns.example.com:31080")?.service).toBe("rev-1");
    expect(to(table, "svc.ns")?.service).toBe("rev-1");
    expect(to(table, "other.ns")).toBeUndefined();
    expect(to(table, undefined)).toBeUndefined();
  });

  test("the longest prefix wins, and more header conditions go first", () => {
    const table = buildTable([ingress(["h"], [path("any"), path("api", { path: "/api" }), path("tag", { headers: { "Knative-Serving-Tag": { exact: "blue" } } })])]);
    expect(to(table, "h", "/x?y=/api")?.service).toBe("any");
    expect(to(table, "h", "/api/v1")?.service).toBe("api");
    expect(to(table, "h", "/api/v1", { "knative-serving-tag": "blue" })?.service).toBe("tag");
    expect(to(table, "h", "/", { "knative-serving-tag": "green" })?.service).toBe("any");
  });

  test("splits share requests by percent", () => {
    const splits = [{ serviceName: "a", serviceNamespace: "ns", servicePort: 80, percent: 90 }, { serviceName: "b", serviceNamespace: "ns", servicePort: 80, percent: 10 }];
    const table = buildTable([ingress(["h"], [{ splits }])]);
    expect([0, 0.5, 0.899, 0.9, 0.999].map((r) => to(table, "h", "/", {}, r)?.service)).toEqual(["a", "a", "a", "b", "b"]);
  });

  test("headers of the path and of the split are added, the split's win", () => {
    const table = buildTable([ingress(["h"], [{ ...path("a"), appendHeaders: { A: "path", B: "path" }, splits: [{ serviceName: "a", serviceNamespace: "ns", servicePort: "8012", appendHeaders: { B: "split" } }], rewriteHost: "inner" }])]);
    expect(to(table, "h")).toEqual({ service: "a", namespace: "ns", port: 8012, headers: { A: "path", B: "split" }, host: "inner" });
  });

  test("only ingresses of the class that are not being deleted are ours", () => {
    expect(isOurs(ingress([], []), "lab")).toBe(true);
    expect(isOurs(ingress([], []), "kourier")).toBe(false);
    expect(isOurs(ingress([], [], { deletionTimestamp: "2026-01-01T00:00:00Z" }), "lab")).toBe(false);
  });

  test("ready means ready for this generation", () => {
    const i = ingress([], []);
    expect(isReady(i)).toBe(false);
    const done = { ...i, status: readyStatus(i, "lb", "2026-01-01T00:00:00Z") };
    expect(isReady(done)).toBe(true);
    expect(isReady({ ...done, metadata: { ...i.metadata, generation: 3 } })).toBe(false);
    expect(done.status.privateLoadBalancer.ingress).toEqual([{ domainInternal: "lb" }]);
  });
});
