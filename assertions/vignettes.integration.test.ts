// The demonstrations against a real relay and a real worker. The plugs are pulled by signals and a TCP link instead of Docker.
import { afterAll, beforeAll, expect, it } from "vitest";
import { LocalWorld } from "./testkit";
import { demonstrate } from "./vignettes";
import { vignettePlan } from "./vignette-plan";

let local: LocalWorld;
beforeAll(async () => {
  local = await new LocalWorld().startRelayAndWorker();
});
afterAll(() => local.stop());

it("all hold, in the order of the plan", async () => {
  const stage = local.stage();
  try {
    const o = await demonstrate(local.input, { stage, store: local.world().store });
    expect(o.evidence.filter((e) => !e.ok)).toEqual([]);
    expect(o.evidence.map((e) => e.check)).toEqual(vignettePlan(local.input).map((p) => p.check));
  } finally {
    await stage.close();
  }
});

it("is red for a worker that cannot be reached, and says so at the first check", async () => {
  await local.worker.stop("SIGKILL");
  const stage = local.stage();
  try {
    const store = local.world().store;
    const o = await demonstrate(local.input, { stage, store: { ...store, now: () => store.now(), presence: async () => undefined, exists: (k) => store.exists(k), close: () => store.close() } });
    expect(o.message).toMatch(/^check 'presence-before' failed/);
    expect(o.evidence.filter((e) => e.seen.startsWith("not run")).length).toBe(vignettePlan(local.input).length - 1);
  } finally {
    await stage.close();
  }
});
