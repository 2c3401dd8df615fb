import { Empty } from "google-protobuf/google/protobuf/empty_pb";
import * as messages from "@pulumi/pulumi/proto/provider_pb";
import { expect, test, vi } from "vitest";
import { ActiveCalls } from "./calls";
import { EngineLog } from "./engine-log";
import { Cancelled, PartlyMade, UserError } from "./errors";
import type { Call, Plugin, Resource } from "./plugin";
import { handlers, toProps, toStruct } from "./serve";
import type { Props } from "./values";

const resource: Resource = {
  check: (_olds, news) => ({ inputs: news, failures: news.bad ? [{ property: "bad", reason: "is bad" }] : [] }),
  diff: () => ({ changes: [{ path: "a.b", kind: "add", replace: false }, { path: "a.c[0]", kind: "delete", replace: true }], deleteFirst: true }),
  plan: (inputs, olds) => ({ ...olds, ...inputs, planned: true }),
  create: (inputs) => Promise.resolve({ id: "new", outputs: inputs }),
  read: (id, state) => Promise.resolve(state.gone ? undefined : { id: `${id}!`, outputs: state }),
  update: (_id, olds, news) => Promise.resolve({ ...olds, ...news }),
  delete: () => Promise.resolve(),
};
const plugin = (rest: Partial<Resource> = {}): Plugin => ({
  name: "test", version: "1.0.0", acceptSecrets: true, resources: { "t:r:R": { ...resource, ...rest } }, settings: ["host"], configure: () => undefined,
});

function ask<Response>(method: string, request: unknown, served = plugin(), calls = new ActiveCalls()): Promise<Response> {
  return new Promise((resolve, reject) => {
    handlers(served, calls, new EngineLog(undefined))[method]?.({ request: request as never }, (error, response) => (error ? reject(Object.assign(new Error(), error)) : resolve(response as Response)));
  });
}
const addressed = <T extends { setUrn(urn: string): unknown }>(request: T, type = "t:r:R"): T => {
  request.setUrn(`urn:pulumi:s::p::parent:t:T$${type}::mine`);
  return request;
};
const create = (properties: Props, preview = false): messages.CreateRequest => {
  const request = addressed(new messages.CreateRequest());
  request.setProperties(toStruct(properties));
  request.setPreview(preview);
  return request;
};

test("type and name are taken from the URN where an older engine sends nothing else", async () => {
  const made = vi.fn((inputs: Props, call: Call) => Promise.resolve({ id: call.name, outputs: inputs }));
  const answer = await ask<messages.CreateResponse>("create", create({ a: 1 }), plugin({ create: made }));
  expect([answer.getId(), toProps(answer.getProperties())]).toEqual(["mine", { a: 1 }]);
});

test("a type that is not served is refused by name", async () => {
  await expect(ask("create", addressed(new messages.CreateRequest(), "t:x:X"))).rejects.toThrow("test stand-in: type 't:x:X' is not supported by the lab stand-in (it serves t:r:R); use the genuine plugin");
});

test("a preview plans and makes nothing", async () => {
  const made = vi.fn(resource.create);
  const answer = await ask<messages.CreateResponse>("create", create({ a: 1 }, true), plugin({ create: made }));
  expect([answer.getId(), toProps(answer.getProperties())]).toEqual(["", { a: 1, planned: true }]);
  expect(made).not.toHaveBeenCalled();
});

test("differences: kinds, what is replaced, and the order of a replacement", async () => {
  const answer = await ask<messages.DiffResponse>("diff", addressed(new messages.DiffRequest()));
  expect(answer.getChanges()).toBe(messages.DiffResponse.DiffChanges.DIFF_SOME);
  expect(answer.getDiffsList()).toEqual(["a"]);
  expect(answer.getReplacesList()).toEqual(["a"]);
  expect(answer.getDeletebeforereplace()).toBe(true);
  const { ADD, DELETE_REPLACE } = messages.PropertyDiff.Kind;
  expect([answer.getDetaileddiffMap().get("a.b")?.getKind(), answer.getDetaileddiffMap().get("a.c[0]")?.getKind()]).toEqual([ADD, DELETE_REPLACE]);
});

test("no difference replaces nothing", async () => {
  const answer = await ask<messages.DiffResponse>("diff", addressed(new messages.DiffRequest()), plugin({ diff: () => ({ changes: [], deleteFirst: true }) }));
  expect([answer.getChanges(), answer.getDeletebeforereplace()]).toEqual([messages.DiffResponse.DiffChanges.DIFF_NONE, false]);
});

test("a refresh gives the id anew, or nothing for what is gone", async () => {
  const read = (state: Props): Promise<messages.ReadResponse> => {
    const request = addressed(new messages.ReadRequest());
    request.setId("old");
    request.setProperties(toStruct(state));
    return ask("read", request);
  };
  expect((await read({ a: 1 })).getId()).toBe("old!");
  expect((await read({ gone: true })).getId()).toBe("");
  await expect(read({})).rejects.toThrow("importing or looking up t:r:R is not supported by the lab stand-in");
});

test("a half-made resource travels with its error", async () => {
  const failing = plugin({ create: () => Promise.reject(new PartlyMade("it broke", "half", { a: 1 })) });
  const error = (await ask("create", create({}), failing).catch((reason: unknown) => reason)) as { message: string; metadata: { get(key: string): Buffer[] } };
  expect(error.message).toBe("it broke");
  const details = error.metadata.get("grpc-status-details-bin")[0]?.toString("latin1");
  expect(details).toContain("pulumirpc.ErrorResourceInitFailed");
  expect(details).toContain("half");
});

test("a user's mistake has no stack, a fault of ours has", async () => {
  const failing = (error: Error): Promise<unknown> => ask("create", create({}), plugin({ create: () => Promise.reject(error) })).catch((reason: Error) => reason.message);
  expect(await failing(new UserError("no such image"))).toBe("no such image");
  expect(await failing(new TypeError("x is undefined"))).toMatch(/^internal error of the lab stand-in: TypeError: x is undefined\n\s+at /);
});

test("provider settings that are not served are refused", async () => {
  const request = new messages.CheckRequest();
  request.setNews(toStruct({ version: "1", host: "h", sshOpts: [] }));
  const failures = (await ask<messages.CheckResponse>("checkConfig", request)).getFailuresList().map((failure) => failure.getProperty());
  expect(failures).toEqual(["sshOpts"]);
});

test("a cancel reaches calls under way and refuses later ones", async () => {
  const calls = new ActiveCalls();
  const waiting = plugin({ create: (_inputs, call) => new Promise((_, reject) => call.signal.addEventListener("abort", () => reject(call.signal.reason as Error))) });
  const running = ask("create", create({}), waiting, calls);
  await Promise.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  await ask("cancel", new Empty(), waiting, calls);
  await expect(running).rejects.toThrow("cancelled");
  await expect(ask("create", create({}), plugin(), calls)).rejects.toThrow("cancelled");
});

test("a custom timeout ends a call and says so", async () => {
  const calls = new ActiveCalls();
  const ended = calls.run(0.01, (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))));
  await expect(ended).rejects.toThrow("timed out after 0.01 s (customTimeouts)");
});

test("cancelling twice keeps the first reason", async () => {
  const calls = new ActiveCalls();
  await calls.cancel(new Cancelled("cancelled"));
  await expect(calls.run(0, () => Promise.resolve(1))).rejects.toThrow("cancelled");
});
