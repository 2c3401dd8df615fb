import { describe, expect, test } from "vitest";
import { createBody, endpoints, updateBody, uploadArchive } from "./container-spec";

test("what is not given is not sent", () => {
  expect(JSON.parse(JSON.stringify(createBody({ image: "i", networkMode: "bridge", restart: "no" })))).toEqual({
    Image: "i",
    HostConfig: { Init: false, AutoRemove: false, ReadonlyRootfs: false, NetworkMode: "bridge", RestartPolicy: { Name: "no", MaximumRetryCount: 0 } },
  });
});

test("units: memory in MiB, durations in nanoseconds, -1 for unlimited swap", () => {
  const body = createBody({ image: "i", memory: 64, memorySwap: -1, healthcheck: { tests: ["CMD", "x"], interval: "1m30s", timeout: "0s", startPeriod: "500ms", retries: 2 } }) as Record<string, Record<string, unknown>>;
  expect(body.HostConfig).toMatchObject({ Memory: 64 * 1024 * 1024, MemorySwap: -1 });
  expect(JSON.parse(JSON.stringify(body.Healthcheck))).toEqual({ Test: ["CMD", "x"], Interval: 90e9, StartPeriod: 5e8, Retries: 2 });
});

test("lists of pairs", () => {
  const body = createBody({ image: "i", labels: [{ label: "a.b", value: "1" }], hosts: [{ host: "h", ip: "::1" }], capabilities: { adds: ["CAP_KILL"] }, tmpfs: { "/s": "size=1m" } }) as Record<string, Record<string, unknown>>;
  expect(body.Labels).toEqual({ "a.b": "1" });
  expect(body.HostConfig).toMatchObject({ ExtraHosts: ["h:::1"], CapAdd: ["CAP_KILL"], CapDrop: undefined, Tmpfs: { "/s": "size=1m" } });
});

test("an update sends only what Docker changes in place", () => {
  expect(updateBody({ restart: "always", memory: 1, envs: ["A=1"] })).toEqual({ RestartPolicy: { Name: "always", MaximumRetryCount: 0 }, Memory: 1048576, MemorySwap: undefined });
});

test("networks with their aliases", () => {
  expect(endpoints({ networksAdvanced: [{ name: "n", aliases: ["a"] }, { name: "m" }] })).toEqual([{ network: "n", aliases: ["a"] }, { network: "m", aliases: [] }]);
  expect(endpoints({})).toEqual([]);
});

describe("uploads", () => {
  const names = (archive: Buffer | undefined): string | undefined => archive?.toString("latin1").split("\0", 1)[0];

  test("none, no archive", () => expect(uploadArchive({}, 0)).toBeUndefined());
  test("an absolute path is relative to the root", () => expect(names(uploadArchive({ uploads: [{ file: "/etc/x", content: "y" }] }, 0))).toBe("etc/x"));
  test.each<[string, Record<string, string>, string]>([
    ["nothing", {}, "one of 'content', 'contentBase64', or 'source' must be set"],
    ["two things", { content: "a", contentBase64: "YQ==" }, "only one of"],
    ["a source that is not there", { source: "/absent/file" }, "could not read the source '/absent/file' of upload '/x'"],
  ])("%s to upload is refused without showing the content", (_, upload, message) => {
    expect(() => uploadArchive({ uploads: [{ file: "/x", ...upload }] }, 0)).toThrow(message);
  });
});
