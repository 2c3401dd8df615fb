// A plugin's program, started as Pulumi does and driven through its protocol.
import * as grpc from "@grpc/grpc-js";
import { Empty } from "google-protobuf/google/protobuf/empty_pb";
import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { EngineService } from "@pulumi/pulumi/proto/engine_grpc_pb";
import type { LogRequest } from "@pulumi/pulumi/proto/engine_pb";
import { ResourceProviderClient } from "@pulumi/pulumi/proto/provider_grpc_pb";
import * as messages from "@pulumi/pulumi/proto/provider_pb";
import { propertyOf } from "../src/provider/diff";
import { toProps, toStruct } from "../src/provider/serve";
import type { Props } from "../src/provider/values";

export interface Difference {
  /** Properties that differ, with how: `{ command: ["UPDATE_REPLACE"] }`. */
  kinds: Record<string, string[]>;
  replaces: string[];
  deleteBeforeReplace: boolean;
}

export interface Failed {
  message: string;
  /** Set when the resource was made all the same. */
  id?: string;
}

type Call<Request, Response> = (request: Request, answer: (error: grpc.ServiceError | null, response: Response) => void) => unknown;
const KIND_NAMES = Object.fromEntries(Object.entries(messages.PropertyDiff.Kind).map(([name, number]) => [number, name]));

export class Provider {
  private constructor(
    private readonly child: ChildProcess,
    private readonly engine: grpc.Server,
    private readonly client: ResourceProviderClient,
    /** Lines sent to the engine's log. */
    readonly logged: string[],
  ) {}

  static async start(program: string, settings: Props = {}, env: Record<string, string> = {}): Promise<Provider> {
    const logged: string[] = [];
    const engine = new grpc.Server();
    engine.addService(EngineService, {
      log: (call: { request: LogRequest }, answer: (error: null, response: Empty) => void) => {
        logged.push(call.request.getMessage());
        answer(null, new Empty());
      },
    } as unknown as grpc.UntypedServiceImplementation);
    const port = await new Promise<number>((resolve, reject) => {
      engine.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound)));
    });
    const child = spawn(program, [`127.0.0.1:${port}`], { stdio: ["ignore", "pipe", "ignore"], env: { ...process.env, ...env } });
    const line = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).once("line", resolve);
      child.once("exit", (code) => reject(new Error(`${program} ended with ${code} before it printed its port`)));
    });
    const client = new ResourceProviderClient(`127.0.0.1:${line.trim()}`, grpc.credentials.createInsecure());
    const provider = new Provider(child, engine, client, logged);
    await provider.configure(settings);
    return provider;
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  async stop(): Promise<void> {
    this.client.close();
    this.engine.forceShutdown();
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGTERM");
    await ended;
  }

  async check(type: string, name: string, olds: Props, news: Props): Promise<{ inputs: Props; failures: string[] }> {
    const request = new messages.CheckRequest();
    address(request, type, name);
    request.setOlds(toStruct(olds));
    request.setNews(toStruct(news));
    request.setRandomseed(Buffer.alloc(32, 7));
    const response = await this.call<messages.CheckRequest, messages.CheckResponse>("check", request);
    return { inputs: toProps(response.getInputs()), failures: response.getFailuresList().map((failure) => failure.getReason()) };
  }

  async diff(type: string, name: string, id: string, olds: Props, oldInputs: Props, news: Props): Promise<Difference> {
    const request = new messages.DiffRequest();
    address(request, type, name);
    request.setId(id);
    request.setOlds(toStruct(olds));
    request.setOldInputs(toStruct(oldInputs));
    request.setNews(toStruct(news));
    const response = await this.call<messages.DiffRequest, messages.DiffResponse>("diff", request);
    const kinds: Record<string, string[]> = {};
    for (const [path, kind] of response.getDetaileddiffMap().entries() as Iterable<[string, messages.PropertyDiff]>) {
      const list = (kinds[propertyOf(path)] ??= []);
      const kindName = KIND_NAMES[kind.getKind()] ?? "?";
      if (!list.includes(kindName)) list.push(kindName);
    }
    return { kinds, replaces: [...new Set(response.getReplacesList())].sort(), deleteBeforeReplace: response.getDeletebeforereplace() };
  }

  async create(type: string, name: string, inputs: Props, { preview = false, timeout = 0 } = {}): Promise<{ id: string; outputs: Props }> {
    const request = new messages.CreateRequest();
    address(request, type, name);
    request.setProperties(toStruct(inputs));
    request.setPreview(preview);
    request.setTimeout(timeout);
    const response = await this.call<messages.CreateRequest, messages.CreateResponse>("create", request);
    return { id: response.getId(), outputs: toProps(response.getProperties()) };
  }

  async read(type: string, name: string, id: string, state: Props, inputs: Props): Promise<{ id: string; outputs: Props } | undefined> {
    const request = new messages.ReadRequest();
    address(request, type, name);
    request.setId(id);
    request.setProperties(toStruct(state));
    request.setInputs(toStruct(inputs));
    const response = await this.call<messages.ReadRequest, messages.ReadResponse>("read", request);
    return response.getId() ? { id: response.getId(), outputs: toProps(response.getProperties()) } : undefined;
  }

  async update(type: string, name: string, id: string, olds: Props, oldInputs: Props, news: Props, preview = false): Promise<Props> {
    const request = new messages.UpdateRequest();
    address(request, type, name);
    request.setId(id);
    request.setOlds(toStruct(olds));
    request.setOldInputs(toStruct(oldInputs));
    request.setNews(toStruct(news));
    request.setPreview(preview);
    const response = await this.call<messages.UpdateRequest, messages.UpdateResponse>("update", request);
    return toProps(response.getProperties());
  }

  async delete(type: string, name: string, id: string, state: Props, inputs: Props): Promise<void> {
    const request = new messages.DeleteRequest();
    address(request, type, name);
    request.setId(id);
    request.setProperties(toStruct(state));
    request.setOldInputs(toStruct(inputs));
    await this.call<messages.DeleteRequest, Empty>("delete", request);
  }

  async cancel(): Promise<void> {
    await this.call<Empty, Empty>("cancel", new Empty());
  }

  private async configure(settings: Props): Promise<void> {
    const request = new messages.ConfigureRequest();
    request.setArgs(toStruct(settings));
    request.setAcceptsecrets(true);
    request.setAcceptresources(true);
    await this.call<messages.ConfigureRequest, messages.ConfigureResponse>("configure", request);
  }

  private call<Request, Response>(method: string, request: Request): Promise<Response> {
    const target = this.client as unknown as Record<string, Call<Request, Response>>;
    return new Promise((resolve, reject) => target[method]?.call(this.client, request, (error, response) => (error ? reject(asFailed(error)) : resolve(response))));
  }
}

function address(request: { setUrn(urn: string): unknown; setName(name: string): unknown; setType(type: string): unknown }, type: string, name: string): void {
  request.setUrn(`urn:pulumi:dev::plugtry::${type}::${name}`);
  request.setName(name);
  request.setType(type);
}

function asFailed(error: grpc.ServiceError): Error & Failed {
  // The id of a half-made resource is text inside the packed detail; the protocol's own decoder is not part of grpc-js.
  const details = error.metadata?.get("grpc-status-details-bin")[0];
  const id = details ? /[0-9a-f]{64}/.exec(Buffer.from(details).toString("latin1"))?.[0] : undefined;
  return Object.assign(new Error(error.details), { id });
}
