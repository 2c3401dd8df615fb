// The whole proof against real programs: Redis, relay, worker, model endpoint and three harnesses.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { until } from "@dialout/common/testkit";
import { ALPINE, REDHAT } from "../harness/src/testkit";
import type { Outcome } from "./evidence";
import type { World } from "./ports";
import { prove } from "./prove";
import { HERE, LocalWorld } from "./testkit";

let local: LocalWorld;
beforeAll(async () => {
  local = await (await new LocalWorld().startRelayAndWorker()).startHarnesses();
});
afterAll(() => local.stop());

const red = (o: Outcome) => o.evidence.filter((e) => !e.ok && !e.seen.startsWith("not run")).map((e) => e.check);
const run = (change: (w: World) => void = () => {}) => {
  const world = local.world();
  change(world);
  return prove(local.input, world, undefined, HERE);
};

describe("with everything as it should be", () => {
  it("passes, with opposite verdicts that quote the real files", async () => {
    const o = await run();
    expect(o.message).toBe("all 26 checks passed");
    expect(o.verdicts.map((v) => [v.arm, v.verdict, v.sandbox])).toEqual([
      ["pods", "FLAGGED", "pod/pool-0"], ["pods", "CLEAR", "pod/pool-0"],
      ["remote", "CLEAR", "remote/sbx-test"], ["remote", "FLAGGED", "remote/sbx-test"], ["remote", "FLAGGED", "remote/sbx-test"],
      ["miswired", "FLAGGED", "pod/pool-0"],
    ]);
    expect(o.verdicts[3]!.reason).toContain('NAME="Red Hat Enterprise Linux"');
  });
});

describe("with one thing broken", () => {
  afterEach(() => {
    writeFileSync(path.join(local.folder, "os-release"), REDHAT);
    for (const pod of ["pool-0", "pool-1"]) local.pods.put(pod, "os-release", ALPINE);
  });

  it("is red when the remote arm really runs on pods", async () => {
    // The proof is told the right thing about the wiring, the traffic goes elsewhere.
    const o = await run((w) => {
      const honest = w.harness.run;
      w.harness.run = (arm, body) => honest(arm === "arm-remote" ? "arm-miswired" : arm, body);
    });
    expect(red(o)).toEqual(["leaf-remote-other", "leaf-remote-own", "marker-leaf-remote", "hops-agree"]);
  });

  it("is red when both sides are one system", async () => {
    writeFileSync(path.join(local.folder, "os-release"), ALPINE);
    expect(red(await run())).toEqual(["patterns-discriminate"]);
  });

  it("is red when the worker's file changes under the leaves", async () => {
    const o = await run((w) => {
      const honest = w.harness.run;
      w.harness.run = (arm, body) => {
        writeFileSync(path.join(local.folder, "os-release"), ALPINE);
        return honest(arm, body);
      };
    });
    expect(red(o)).toEqual(["leaf-remote-other", "leaf-remote-own"]);
  });

  it("is red when an old session is asked again", async () => {
    const seen: unknown[] = [];
    const remember = (w: World) => {
      const honest = w.harness.run;
      w.harness.run = (arm, body) => (seen.push(body), honest(arm, body));
    };
    await run(remember);
    const o = await run((w) => {
      const honest = w.harness.run;
      // As a client that reuses its session ids would.
      w.harness.run = (arm, body) => honest(arm, { ...(body as object), sessionId: (seen.shift() as { sessionId: string }).sessionId });
    });
    expect(o.passed).toBe(false);
    expect(red(o)).toContain("leaf-remote-own");
  });

  it("is red when the worker is dead, and green when it is back", async () => {
    await local.worker.stop("SIGKILL");
    const gone = await run();
    expect(red(gone)).toEqual(["worker-running"]);
    expect(gone.message).toContain("docker start worker");
    await local.startWorker();
    const store = local.world().store;
    await until("presence is back", async () => (await store.presence("sbx-test")) !== undefined);
    expect((await run()).passed).toBe(true);
  });
});
