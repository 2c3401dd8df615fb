import { expect, test } from "vitest";
import { buildQuery } from "./build";
import { readProgress } from "./build-log";

test("a build's query", () => {
  expect(JSON.parse(JSON.stringify(buildQuery("mine:1", { context: ".", dockerfile: "Dockerfile", useLegacyBuilder: true, buildArgs: { A: "1" }, labels: { l: "v" }, tags: ["mine:2"], noCache: true, remove: true, target: "" })))).toEqual({
    version: 2, t: ["mine:1", "mine:2"], dockerfile: "Dockerfile", buildargs: '{"A":"1"}', labels: '{"l":"v"}', nocache: true, rm: true,
  });
});

// Written by hand from the field numbers of moby.buildkit.v1: field << 3 | 2, length, bytes.
const field = (number: number, bytes: Buffer): Buffer => Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
const vertex = (name: string, started: boolean, completed: boolean): Buffer =>
  field(1, Buffer.concat([field(1, Buffer.from("sha256:x")), field(3, Buffer.from(name)), ...(started ? [field(5, Buffer.from([8, 1]))] : []), ...(completed ? [field(6, Buffer.from([8, 2]))] : [])]));

test("steps that begin and the output of commands are read, the rest is skipped", () => {
  const log = field(3, Buffer.concat([field(1, Buffer.from("sha256:x")), Buffer.from([3 << 3, 2]), field(4, Buffer.from("oops\n"))]));
  const message = Buffer.concat([vertex("[1/2] RUN a", true, false), vertex("[1/2] RUN a", true, true), vertex("[2/2] RUN b", false, false), field(2, Buffer.from([10, 1, 65])), log, log]);
  expect(readProgress(message.toString("base64"))).toEqual({ steps: ["[1/2] RUN a"], output: "oops\noops\n" });
});
