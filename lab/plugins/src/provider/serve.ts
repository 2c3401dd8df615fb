// The provider protocol around a Plugin: one gRPC server, its port printed on stdout, which is how Pulumi finds it.
import * as grpc from "@grpc/grpc-js";
import { Empty } from "google-protobuf/google/protobuf/empty_pb";
import { Struct } from "google-protobuf/google/protobuf/struct_pb";
import * as plugins from "@pulumi/pulumi/proto/plugin_pb";
import * as services from "@pulumi/pulumi/proto/provider_grpc_pb";
import * as messages from "@pulumi/pulumi/proto/provider_pb";
import { ActiveCalls } from "./calls";
import { propertyOf, type Change } from "./diff";
import { EngineLog } from "./engine-log";
import { Cancelled, UserError } from "./errors";
import type { Call, Plugin, Resource } from "./plugin";
import { asServiceError } from "./status";
import { revealProps, type Props } from "./values";

const KINDS = {
  add: [messages.PropertyDiff.Kind.ADD, messages.PropertyDiff.Kind.ADD_REPLACE],
  update: [messages.PropertyDiff.Kind.UPDATE, messages.PropertyDiff.Kind.UPDATE_REPLACE],
  delete: [messages.PropertyDiff.Kind.DELETE, messages.PropertyDiff.Kind.DELETE_REPLACE],
} as const;

export const toProps = (struct?: Struct): Props => (struct?.toJavaScript() ?? {}) as Props;
// JSON drops what is undefined, which a Struct cannot hold.
export const toStruct = (props: Props): Struct => Struct.fromJavaScript(JSON.parse(JSON.stringify(props)));

type Unary = (call: { request: never }, answer: grpc.sendUnaryData<unknown>) => void;

/** The protocol's methods for this plugin. Unlisted ones answer UNIMPLEMENTED. */
export function handlers(plugin: Plugin, calls: ActiveCalls, log: EngineLog): Record<string, Unary> {
  const resource = (type: string): Resource => {
    const found = plugin.resources[type];
    if (found) return found;
    throw new UserError(
      `${plugin.name} stand-in: type '${type}' is not supported by the lab stand-in (it serves ${Object.keys(plugin.resources).join(", ")}); use the genuine plugin`,
    );
  };
  type Target = { getUrn(): string; getName(): string; getType(): string };
  const within = async <T>(request: Target & { getTimeout(): number }, work: (call: Call, target: Resource) => Promise<T>): Promise<T> => {
    const target = resource(typeOf(request));
    return calls.run(request.getTimeout(), async (signal) => {
      const urn = request.getUrn();
      try {
        return await work({ urn, name: nameOf(request), signal, status: (line) => log.status(urn, line) }, target);
      } finally {
        await log.flush();
      }
    });
  };
  const checkConfig = (request: messages.CheckRequest): messages.CheckResponse => {
    const news = toProps(request.getNews());
    const answer = new messages.CheckResponse();
    answer.setInputs(request.getNews());
    answer.setFailuresList(
      Object.keys(news).filter((key) => !key.startsWith("__") && key !== "version" && !plugin.settings.includes(key)).map((key) => {
        const failure = new messages.CheckFailure();
        failure.setProperty(key);
        failure.setReason(`${plugin.name} stand-in: provider setting '${key}' is not supported by the lab stand-in; use the genuine plugin`);
        return failure;
      }),
    );
    return answer;
  };

  return {
    getPluginInfo: reply(() => {
      const info = new plugins.PluginInfo();
      info.setVersion(plugin.version);
      return info;
    }),
    getSchema: reply(() => {
      const answer = new messages.GetSchemaResponse();
      answer.setSchema(JSON.stringify({ name: plugin.name, version: plugin.version, resources: Object.fromEntries(Object.keys(plugin.resources).map((type) => [type, {}])) }));
      return answer;
    }),
    checkConfig: reply(checkConfig),
    diffConfig: reply((request: messages.DiffRequest) => {
      const [olds, news] = [toProps(request.getOlds()), toProps(request.getNews())];
      const differs = plugin.settings.filter((key) => JSON.stringify(olds[key]) !== JSON.stringify(news[key]));
      return diffResponse(differs.map((path): Change => ({ path, kind: "update", replace: false })), false);
    }),
    configure: reply((request: messages.ConfigureRequest) => {
      plugin.configure(revealProps(toProps(request.getArgs())));
      const answer = new messages.ConfigureResponse();
      answer.setAcceptsecrets(plugin.acceptSecrets);
      answer.setSupportspreview(true);
      answer.setAcceptresources(false);
      answer.setAcceptoutputs(false);
      return answer;
    }),
    check: reply((request: messages.CheckRequest) => {
      const { inputs, failures } = resource(typeOf(request)).check(
        toProps(request.getOlds()), toProps(request.getNews()), nameOf(request), request.getRandomseed_asU8(),
      );
      const answer = new messages.CheckResponse();
      answer.setInputs(toStruct(inputs));
      answer.setFailuresList(failures.map(({ property, reason }) => {
        const failure = new messages.CheckFailure();
        failure.setProperty(property);
        failure.setReason(reason);
        return failure;
      }));
      return answer;
    }),
    diff: reply((request: messages.DiffRequest) => {
      const { changes, deleteFirst } = resource(typeOf(request)).diff(toProps(request.getOlds()), toProps(request.getNews()));
      return diffResponse(changes, deleteFirst);
    }),
    create: reply((request: messages.CreateRequest) => within(request, async (call, target) => {
      const inputs = toProps(request.getProperties());
      const answer = new messages.CreateResponse();
      if (request.getPreview()) {
        answer.setProperties(toStruct(target.plan(inputs)));
        return answer;
      }
      const { id, outputs } = await target.create(inputs, call);
      answer.setId(id);
      answer.setProperties(toStruct(outputs));
      return answer;
    })),
    read: reply((request: messages.ReadRequest) => within(request, async (call, target) => {
      const [state, inputs] = [toProps(request.getProperties()), toProps(request.getInputs())];
      if (Object.keys(state).length === 0) throw new UserError(`${plugin.name} stand-in: importing or looking up ${typeOf(request)} is not supported by the lab stand-in; use the genuine plugin`);
      const answer = new messages.ReadResponse();
      const found = await target.read(request.getId(), state, inputs, call);
      if (!found) return answer;
      answer.setId(found.id);
      answer.setProperties(toStruct(found.outputs));
      answer.setInputs(toStruct(inputs));
      return answer;
    })),
    update: reply((request: messages.UpdateRequest) => within(request, async (call, target) => {
      const [olds, news] = [toProps(request.getOlds()), toProps(request.getNews())];
      const answer = new messages.UpdateResponse();
      answer.setProperties(toStruct(request.getPreview() ? target.plan(news, olds) : await target.update(request.getId(), olds, news, call)));
      return answer;
    })),
    delete: reply((request: messages.DeleteRequest) => within(request, async (call, target) => {
      await target.delete(request.getId(), toProps(request.getProperties()), call);
      return new Empty();
    })),
    cancel: reply(() => {
      void calls.cancel(new Cancelled("cancelled"));
      return new Empty();
    }),
  };
}

const nameOf = (request: { getUrn(): string; getName(): string }): string => request.getName() || (request.getUrn().split("::").at(-1) ?? "");
const typeOf = (request: { getUrn(): string; getType(): string }): string => request.getType() || (request.getUrn().split("::").at(-2)?.split("$").at(-1) ?? "");

function reply<Request, Response>(work: (request: Request) => Response | Promise<Response>): Unary {
  return (call, answer) => {
    Promise.resolve()
      .then(() => work(call.request as Request))
      .then((response) => answer(null, response), (error: unknown) => answer(asServiceError(error)));
  };
}

function diffResponse(changes: readonly Change[], deleteFirst: boolean): messages.DiffResponse {
  const answer = new messages.DiffResponse();
  const replaced = changes.filter((change) => change.replace);
  answer.setChanges(changes.length ? messages.DiffResponse.DiffChanges.DIFF_SOME : messages.DiffResponse.DiffChanges.DIFF_NONE);
  answer.setDiffsList([...new Set(changes.map((change) => propertyOf(change.path)))]);
  answer.setReplacesList([...new Set(replaced.map((change) => propertyOf(change.path)))]);
  answer.setDeletebeforereplace(deleteFirst && replaced.length > 0);
  answer.setHasdetaileddiff(true);
  for (const { path, kind, replace } of changes) {
    const diff = new messages.PropertyDiff();
    diff.setKind(KINDS[kind][replace ? 1 : 0]);
    answer.getDetaileddiffMap().set(path, diff);
  }
  return answer;
}

/** Serves until Pulumi ends the process. `argv` holds the address of the engine. */
export async function serve(plugin: Plugin, argv: readonly string[]): Promise<void> {
  const calls = new ActiveCalls();
  const log = new EngineLog(argv.find((argument) => !argument.startsWith("-")));
  const server = new grpc.Server({ "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 });
  server.addService(services.ResourceProviderService, handlers(plugin, calls, log) as unknown as grpc.UntypedServiceImplementation);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  calls.cancelOnExit();
  process.stdout.write(`${port}\n`);
}
