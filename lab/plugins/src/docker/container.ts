// docker:index/container:Container.
import { diffProps } from "../provider/diff";
import { PartlyMade, UserError, messageOf } from "../provider/errors";
import { pause } from "../provider/pause";
import type { Call, Resource } from "../provider/plugin";
import { checkInputs, givenOutputs, planOutputs } from "../provider/schema";
import type { Props } from "../provider/values";
import { CONTAINER_FIELDS } from "./container-fields";
import { UPDATED_IN_PLACE, createBody, endpoints, updateBody, uploadArchive } from "./container-spec";
import { demultiplex, stateOf, type Inspected } from "./container-state";
import { EngineError, type Engine } from "./engine";
import { localOrPulled } from "./images";

export const CONTAINER = "docker:index/container:Container";
const POLL_MS = 200;
const GONE_WITHIN_MS = 60_000;

export class Container implements Resource {
  constructor(private readonly engine: () => Engine) {}

  check(olds: Props, news: Props, name: string, seed: Uint8Array): ReturnType<Resource["check"]> {
    return checkInputs(CONTAINER_FIELDS, olds, news, { plugin: "docker", type: CONTAINER, name, seed });
  }

  diff(olds: Props, news: Props): ReturnType<Resource["diff"]> {
    return { changes: diffProps(CONTAINER_FIELDS, olds, news), deleteFirst: true };
  }

  plan(inputs: Props, olds?: Props): Props {
    return planOutputs(CONTAINER_FIELDS, inputs, olds);
  }

  async create(inputs: Props, call: Call): Promise<{ id: string; outputs: Props }> {
    const engine = this.engine();
    const { signal } = call;
    const uploads = uploadArchive(inputs, Math.floor(Date.now() / 1000));
    await localOrPulled(engine, String(inputs.image), call).catch((error: unknown) => {
      throw new UserError(`Unable to create container with image ${String(inputs.image)}: ${messageOf(error)}`);
    });
    const id = await this.make(engine, inputs, signal);
    let logs: string | null = null;
    try {
      await joinNetworks(engine, id, inputs, signal);
      if (uploads) await engine.bytes("PUT", `/containers/${id}/archive`, { query: { path: "/" }, body: uploads, signal }).catch(explain("Unable to upload volume content"));
      if (inputs.start !== false) await engine.bytes("POST", `/containers/${id}/start`, { signal }).catch(explain("Unable to start container"));
      if (inputs.attach === true) logs = await attached(engine, id, inputs, signal);
      else if (inputs.wait === true && inputs.start !== false) await healthy(engine, id, Number(inputs.waitTimeout), signal);
    } catch (error) {
      throw new PartlyMade(messageOf(error), id, await this.halfMade(engine, id, inputs));
    }
    return { id, outputs: await this.created(engine, id, inputs, logs) };
  }

  async read(id: string, state: Props, inputs: Props, call: Call): Promise<{ id: string; outputs: Props } | undefined> {
    const inspected = await inspect(this.engine(), id, call.signal);
    return inspected ? { id, outputs: { ...state, ...stateOf(inspected, inputs.mustRun !== false) } } : undefined;
  }

  async update(id: string, olds: Props, news: Props, call: Call): Promise<Props> {
    const engine = this.engine();
    const { signal } = call;
    const before = await inspect(engine, id, signal);
    if (!before) throw new UserError(`container ${String(olds.name)} (${id.slice(0, 12)}) is gone; run pulumi refresh, then pulumi up`);
    const changed = new Set(diffProps(CONTAINER_FIELDS, olds, news).map((change) => change.path));
    if (UPDATED_IN_PLACE.some((key) => changed.has(key))) {
      await engine.json("POST", `/containers/${id}/update`, { body: updateBody(news), signal }).catch(explain("Unable to update a container"));
    }
    if (news.mustRun === true && news.start !== false && !before.State.Running) {
      await engine.bytes("POST", `/containers/${id}/start`, { signal }).catch(explain("Unable to start container"));
    }
    // as with the genuine plugin, what follows from the change shows after a refresh
    return { ...olds, ...givenOutputs(CONTAINER_FIELDS, news) };
  }

  async delete(id: string, state: Props, call: Call): Promise<void> {
    const engine = this.engine();
    const { signal } = call;
    const grace = Number(state.destroyGraceSeconds ?? 0);
    if (grace > 0 && state.attach !== true) await engine.bytes("POST", `/containers/${id}/stop`, { query: { t: grace }, signal }).catch(unlessGone);
    await engine
      .bytes("DELETE", `/containers/${id}`, { query: { force: true, v: state.removeVolumes !== false }, signal })
      // 409: somebody else, or `rm`, is removing it already
      .catch((error: unknown) => (error instanceof EngineError && error.status === 409 ? undefined : unlessGone(error)));
    const deadline = Date.now() + GONE_WITHIN_MS;
    while (await inspect(engine, id, signal)) {
      if (Date.now() > deadline) throw new UserError(`container ${String(state.name)} (${id.slice(0, 12)}) was not gone ${GONE_WITHIN_MS / 1000} s after its removal; see docker ps -a`);
      await pause(POLL_MS, signal);
    }
  }

  private async make(engine: Engine, inputs: Props, signal: AbortSignal): Promise<string> {
    try {
      return (await engine.json<{ Id: string }>("POST", "/containers/create", { query: { name: String(inputs.name) }, body: createBody(inputs), signal })).Id;
    } catch (error) {
      const inUse = error instanceof EngineError && error.status === 409;
      throw new UserError(`Unable to create container: ${messageOf(error)}${inUse ? ` If it is not needed: docker rm -f ${String(inputs.name)}` : ""}`);
    }
  }

  private async created(engine: Engine, id: string, inputs: Props, containerLogs: string | null): Promise<Props> {
    const inspected = await inspect(engine, id);
    // one with `rm` may have come and gone
    const state = inspected ? stateOf(inspected, inputs.mustRun !== false) : {};
    return { ...planOutputs(CONTAINER_FIELDS, inputs, {}), ...state, ...wordedAs(inputs), containerLogs };
  }

  // What is already broken must not hide why.
  private async halfMade(engine: Engine, id: string, inputs: Props): Promise<Props> {
    return this.created(engine, id, inputs, null).catch(() => planOutputs(CONTAINER_FIELDS, inputs, {}));
  }
}

/** Inputs that were given keep the program's wording in the state; what they turned into is for `refresh` to find out. */
function wordedAs(inputs: Props): Props {
  return Object.fromEntries(Object.entries(givenOutputs(CONTAINER_FIELDS, inputs)).filter(([key]) => inputs[key] !== undefined && key !== "mustRun"));
}

function inspect(engine: Engine, id: string, signal?: AbortSignal): Promise<Inspected | null> {
  return engine.find<Inspected>(`/containers/${id}/json`, { signal });
}

async function joinNetworks(engine: Engine, id: string, inputs: Props, signal: AbortSignal): Promise<void> {
  const wanted = endpoints(inputs);
  if (wanted.length === 0) return;
  await engine.bytes("POST", "/networks/bridge/disconnect", { body: { Container: id }, signal }).catch((error: unknown) => {
    if (!/is not connected to (the )?network/.test(messageOf(error))) throw new UserError(`Unable to disconnect the default network: ${messageOf(error)}`);
  });
  for (const { network, aliases } of wanted) {
    await engine
      .bytes("POST", `/networks/${encodeURIComponent(network)}/connect`, { body: { Container: id, EndpointConfig: { Aliases: aliases, IPAMConfig: {} } }, signal })
      .catch(explain(`Unable to connect to network '${network}'`));
  }
}

/** Waits for the end; the logs when they are asked for. */
async function attached(engine: Engine, id: string, inputs: Props, signal: AbortSignal): Promise<string | null> {
  await engine.bytes("POST", `/containers/${id}/wait`, { query: { condition: "not-running" }, signal }).catch(explain("Unable to wait container end of execution"));
  if (inputs.logs !== true) return null;
  return demultiplex(await engine.bytes("GET", `/containers/${id}/logs`, { query: { stdout: true, stderr: true }, signal }));
}

async function healthy(engine: Engine, id: string, seconds: number, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const state = (await inspect(engine, id, signal))?.State;
    if (!state?.Running) throw new UserError("the container stopped before it became healthy; see docker logs");
    if (state.Health?.Status === "healthy") return;
    if (Date.now() > deadline) {
      throw new UserError(`the container was not healthy within ${seconds} s (waitTimeout): ${state.Health ? `${state.Health.Status}, ${state.Health.Log?.at(-1)?.Output.trim() || "no output"}` : "it has no health check"}`);
    }
    await pause(POLL_MS, signal);
  }
}

function unlessGone(error: unknown): void {
  if (!(error instanceof EngineError && error.status === 404)) throw error;
}

const explain = (what: string) => (error: unknown): never => {
  throw new UserError(`${what}: ${messageOf(error)}`);
};
