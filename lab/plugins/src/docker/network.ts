// docker:index/network:Network.
import { diffProps } from "../provider/diff";
import { UserError, messageOf } from "../provider/errors";
import { pause } from "../provider/pause";
import type { Call, Resource } from "../provider/plugin";
import { checkInputs, givenOutputs, planOutputs, type Field, type Fields } from "../provider/schema";
import type { Props, Value } from "../provider/values";
import { EngineError, type Engine } from "./engine";

export const NETWORK = "docker:index/network:Network";
const POLL_MS = 500;
const EMPTY_WITHIN_MS = 30_000;

const text: Field = { type: "string", unset: "" };

export const NETWORK_FIELDS: Fields = {
  name: { type: "string", autoname: true, replace: true },
  driver: { type: "string", computed: true, replace: true },
  internal: { type: "bool", computed: true, replace: true },
  attachable: { type: "bool", replace: true },
  ipv6: { type: "bool", replace: true },
  labels: { type: "set", replace: true, of: { type: "object", fields: { label: { type: "string", required: true }, value: { type: "string", required: true } } } },
  options: { type: "map", computed: true, replace: true },
  ipamDriver: { type: "string", default: "default", replace: true },
  ipamConfigs: { type: "set", computed: true, replace: true, of: { type: "object", fields: { subnet: text, gateway: text, ipRange: text, auxAddress: { type: "map" } } } },
  scope: { type: "string", output: true },
};

export interface InspectedNetwork {
  Id: string;
  Name: string;
  Driver: string;
  Scope: string;
  Internal: boolean;
  Attachable: boolean;
  EnableIPv6: boolean;
  Labels: Record<string, string> | null;
  Options: Record<string, string> | null;
  IPAM: { Driver: string; Config: { Subnet?: string; Gateway?: string; IPRange?: string; AuxiliaryAddresses?: Record<string, string> }[] | null };
}

const objects = (value: Value | undefined): Props[] => (Array.isArray(value) ? (value as Props[]) : []);

/** Body of POST /networks/create. */
export function networkBody(inputs: Props): object {
  return {
    Name: inputs.name,
    // or Docker makes a second one of the same name
    CheckDuplicate: true,
    Driver: inputs.driver,
    Internal: inputs.internal ?? false,
    Attachable: inputs.attachable ?? false,
    EnableIPv6: inputs.ipv6 ?? false,
    Labels: Object.fromEntries(objects(inputs.labels).map(({ label, value }) => [String(label), value])),
    Options: inputs.options ?? {},
    IPAM: {
      Driver: inputs.ipamDriver,
      Config: objects(inputs.ipamConfigs).map(({ subnet, gateway, ipRange, auxAddress }) => ({ Subnet: subnet, Gateway: gateway, IPRange: ipRange, AuxiliaryAddresses: auxAddress })),
    },
  };
}

export function networkState(network: InspectedNetwork): Props {
  return {
    id: network.Id,
    name: network.Name,
    driver: network.Driver,
    scope: network.Scope,
    internal: network.Internal,
    attachable: network.Attachable,
    ipv6: network.EnableIPv6,
    labels: Object.entries(network.Labels ?? {}).map(([label, value]) => ({ label, value })),
    options: network.Options ?? {},
    ipamDriver: network.IPAM.Driver,
    ipamConfigs: (network.IPAM.Config ?? []).map(({ Subnet, Gateway, IPRange, AuxiliaryAddresses }) => ({
      subnet: Subnet ?? "", gateway: Gateway ?? "", ipRange: IPRange ?? "", auxAddress: AuxiliaryAddresses ?? {},
    })),
  };
}

export class Network implements Resource {
  constructor(private readonly engine: () => Engine) {}

  check(olds: Props, news: Props, name: string, seed: Uint8Array): ReturnType<Resource["check"]> {
    return checkInputs(NETWORK_FIELDS, olds, news, { plugin: "docker", type: NETWORK, name, seed });
  }

  diff(olds: Props, news: Props): ReturnType<Resource["diff"]> {
    return { changes: diffProps(NETWORK_FIELDS, olds, news), deleteFirst: true };
  }

  plan(inputs: Props, olds?: Props): Props {
    return planOutputs(NETWORK_FIELDS, inputs, olds);
  }

  async create(inputs: Props, call: Call): Promise<{ id: string; outputs: Props }> {
    const engine = this.engine();
    const name = String(inputs.name);
    const made = await engine.json<{ Id: string }>("POST", "/networks/create", { body: networkBody(inputs), signal: call.signal }).catch((error: unknown) => {
      const taken = error instanceof EngineError && error.status === 409;
      throw new UserError(`Unable to create network: ${messageOf(error)}${taken ? `. If it is not needed: docker network rm ${name}` : ""}`);
    });
    const network = await engine.find<InspectedNetwork>(`/networks/${made.Id}`);
    if (!network) throw new UserError(`network ${name} was gone again right after it was made`);
    return { id: made.Id, outputs: { ...givenOutputs(NETWORK_FIELDS, inputs), ...networkState(network) } };
  }

  async read(id: string, state: Props, _inputs: Props, call: Call): Promise<{ id: string; outputs: Props } | undefined> {
    const network = await this.engine().find<InspectedNetwork>(`/networks/${id}`, { signal: call.signal });
    return network ? { id, outputs: { ...state, ...networkState(network) } } : undefined;
  }

  // every property makes a new network, so that there is nothing to do
  update(_id: string, olds: Props, news: Props): Promise<Props> {
    return Promise.resolve({ ...olds, ...givenOutputs(NETWORK_FIELDS, news) });
  }

  async delete(id: string, state: Props, call: Call): Promise<void> {
    const engine = this.engine();
    const deadline = Date.now() + EMPTY_WITHIN_MS;
    for (;;) {
      try {
        await engine.bytes("DELETE", `/networks/${id}`, { signal: call.signal });
        return;
      } catch (error) {
        if (error instanceof EngineError && error.status === 404) return;
        // containers that are being removed take a moment to leave
        if (!messageOf(error).includes("has active endpoints")) throw error;
        if (Date.now() > deadline) throw new UserError(`network ${String(state.name)} still has containers: ${messageOf(error)}. See docker network inspect ${String(state.name)}`);
        await pause(POLL_MS, call.signal);
      }
    }
  }
}
