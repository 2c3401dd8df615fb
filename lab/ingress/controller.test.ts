import { expect, test } from "vitest";
import { Controller } from "./controller.ts";
import { jsonLines } from "./kube.ts";
import { type KIngress, CLASS_ANNOTATION } from "./routes.ts";

const ingress = (name: string, ingressClass = "lab"): KIngress => ({
  metadata: { name, namespace: "ns", generation: 1, annotations: { [CLASS_ANNOTATION]: ingressClass } },
  spec: { rules: [{ hosts: [`${name}.ns`], http: { paths: [{ splits: [{ serviceName: name, serviceNamespace: "ns", servicePort: 80 }] }] } }] },
});
const controller = () => new Controller({ api: { host: "-", port: 0, ca: Buffer.from("") }, ingressClass: "lab", domain: "lb", log: () => {}, signal: AbortSignal.abort() });
const hosts = (c: Controller) => [...c.table.keys()].sort();

test("a list replaces what was known; of other classes nothing is routed", () => {
  const c = controller();
  c.replaceAll([ingress("a"), ingress("b"), ingress("foreign", "kourier")]);
  expect(hosts(c)).toEqual(["a.ns", "b.ns"]);
  c.replaceAll([ingress("b")]);
  expect(hosts(c)).toEqual(["b.ns"]);
});

test("events add, change, remove; one that changes its class is no longer routed", () => {
  const c = controller();
  c.apply("ADDED", ingress("a"));
  c.apply("ADDED", ingress("b"));
  c.apply("DELETED", ingress("a"));
  expect(hosts(c)).toEqual(["b.ns"]);
  c.apply("MODIFIED", ingress("b", "kourier"));
  expect(hosts(c)).toEqual([]);
});

test("a watch's lines are put together across parts", async () => {
  async function* parts() { yield '{"a":'; yield '1}\n{"a":2}\n{"a"'; yield ":3"; }
  const seen: unknown[] = [];
  for await (const value of jsonLines(parts())) seen.push(value);
  expect(seen).toEqual([{ a: 1 }, { a: 2 }]);
});
