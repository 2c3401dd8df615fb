import { expect, test } from "vitest";
import { demultiplex, stateOf, type Inspected } from "./container-state";

const inspected: Inspected = {
  Id: "abc",
  Name: "/mine",
  Platform: "linux",
  State: { Running: true, ExitCode: 0 },
  Config: { Hostname: "h", User: "", WorkingDir: "", Tty: false, Cmd: null, Entrypoint: null },
  HostConfig: {
    Init: null, AutoRemove: false, ReadonlyRootfs: false, NetworkMode: "bridge", RestartPolicy: { Name: "no", MaximumRetryCount: 0 }, CapAdd: null, CapDrop: null, SecurityOpt: null,
    ExtraHosts: ["a:1.2.3.4", "six:::1"], Memory: 67108864, MemorySwap: -1, IpcMode: "private", Runtime: "runc", ShmSize: 67108864, LogConfig: { Type: "json-file" },
  },
  NetworkSettings: { Networks: null },
};

test("a running container", () => {
  expect(stateOf(inspected, true)).toMatchObject({ name: "mine", memory: 64, memorySwap: -1, init: false, mustRun: true, hosts: [{ host: "a", ip: "1.2.3.4" }, { host: "six", ip: "::1" }] });
});

test("no capabilities or health check are no statement about them", () => {
  expect(stateOf(inspected, true)).not.toHaveProperty("healthcheck");
  expect(stateOf(inspected, true)).not.toHaveProperty("capabilities");
  expect(stateOf({ ...inspected, HostConfig: { ...inspected.HostConfig, CapDrop: ["ALL"] } }, true).capabilities).toEqual({ adds: [], drops: ["ALL"] });
});

test("one that stopped is not as it must be", () => {
  expect(stateOf({ ...inspected, State: { Running: false, ExitCode: 137 } }, true)).toMatchObject({ mustRun: false, exitCode: 137 });
  expect(stateOf(inspected, false)).toMatchObject({ mustRun: false });
  expect(stateOf(inspected, true)).not.toHaveProperty("exitCode");
});

test("logs are taken out of their frames, a torn last one as far as it goes", () => {
  const frame = (stream: number, text: string): Buffer => Buffer.concat([Buffer.from([stream, 0, 0, 0, 0, 0, 0, text.length]), Buffer.from(text)]);
  expect(demultiplex(Buffer.concat([frame(1, "out\n"), frame(2, "err\n"), frame(1, "torn").subarray(0, 10)]))).toBe("out\nerr\nto");
  expect(demultiplex(Buffer.alloc(0))).toBe("");
});
