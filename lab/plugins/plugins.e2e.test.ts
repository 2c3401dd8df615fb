// The stand-ins against the genuine plugins: the same scenarios, through the provider protocol and with a real Docker, must give the
// same defaults, previews, outputs, differences and containers. Whoever changes a stand-in learns here whether it still is one.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { COMMAND, COMMAND_FIELDS } from "./src/command/command";
import { CONTAINER } from "./src/docker/container";
import { CONTAINER_FIELDS } from "./src/docker/container-fields";
import { NETWORK, NETWORK_FIELDS } from "./src/docker/network";
import { REMOTE_IMAGE, REMOTE_IMAGE_FIELDS } from "./src/docker/remote-image";
import { TAG, TAG_FIELDS } from "./src/docker/tag";
import type { Fields } from "./src/provider/schema";
import { REPO, baseImage, genuineFolder, removeLeftovers } from "./testing/programs";
import { Provider } from "./testing/provider";
import { record, type Step } from "./testing/record";
import { scenarios } from "./testing/scenarios";
import { execFileSync } from "node:child_process";

const scratch = mkdtempSync(path.join(tmpdir(), "plugtry-"));
const image = baseImage();
const genuine = image ? genuineFolder(scratch) : undefined;
const reason = !image ? "no Docker with an image to make containers of (lab/lab up makes them)" : !genuine ? "no genuine plugins (genuine.tar.xz in a folder of LAB_CACHE)" : undefined;
if (reason) console.log(`plugins.e2e: skipped, ${reason}`);

const SERVED: Record<string, Fields> = {
  [COMMAND]: COMMAND_FIELDS,
  [CONTAINER]: CONTAINER_FIELDS,
  [NETWORK]: NETWORK_FIELDS,
  [REMOTE_IMAGE]: REMOTE_IMAGE_FIELDS,
  [TAG]: TAG_FIELDS,
};

describe.skipIf(reason)("stand-ins behave as the genuine plugins", () => {
  const context = path.join(scratch, "context");
  const programs = { genuine: genuine ?? "", standin: path.join(scratch, "standin") };
  const providers = new Map<string, Provider>();

  beforeAll(async () => {
    execFileSync(path.join(REPO, "lab/plugins/pack.sh"), [programs.standin]);
    execFileSync("mkdir", ["-p", context]);
    const files = {
      Dockerfile: `FROM ${image}\nARG WHO=nobody\nCOPY . /context/\nRUN echo "built for $WHO" > /who\nUSER 65532\nENTRYPOINT ["sleep"]\nCMD ["1000"]\n`,
      "Dockerfile.bad": `FROM ${image}\nRUN echo oops >&2; exit 9\n`,
      ".dockerignore": "*.log\n",
      "a.txt": "hello\n",
      "b.log": "not sent\n",
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(path.join(context, name), text);
    removeLeftovers();
    for (const set of ["genuine", "standin"] as const) {
      for (const plugin of ["docker", "command"]) providers.set(`${set} ${plugin}`, await Provider.start(path.join(programs[set], `pulumi-resource-${plugin}`)));
    }
  });
  afterEach(() => removeLeftovers());
  afterAll(async () => {
    for (const provider of providers.values()) await provider.stop();
    rmSync(scratch, { recursive: true, force: true });
  });

  for (const scenario of scenarios(image ?? "", context)) {
    test(scenario.title, async () => {
      const runs: Record<string, Step[]> = {};
      for (const set of ["genuine", "standin"]) {
        const provider = providers.get(`${set} ${scenario.type.split(":")[0]}`);
        if (!provider) throw new Error(`no provider for ${scenario.type}`);
        const steps = await record(provider, scenario, SERVED[scenario.type] ?? {});
        if (scenario.fails) {
          expect(steps.at(-1)?.failed, set).toMatch(scenario.fails);
          for (const step of steps) delete step.failed;
        }
        runs[set] = steps;
        removeLeftovers();
      }
      if (scenario.fails) {
        // a stand-in may leave less behind than the genuine plugin, never more
        expect(runs.genuine?.at(-1)?.made || !runs.standin?.at(-1)?.made).toBe(true);
        for (const steps of Object.values(runs)) for (const step of steps) delete step.made;
      }
      expect(runs.standin).toEqual(runs.genuine);
    });
  }
});
