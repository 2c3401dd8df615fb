import { SettingError } from "@dialout/common";
import { describe, expect, it } from "vitest";
import { readSettings } from "./settings";

const ok = { SH_RELAY_EXEC_TOKEN: "e", SH_RELAY_TOKEN: "w" };

describe("readSettings", () => {
  it("has the documented defaults", () => {
    expect(readSettings(ok)).toMatchObject({
      host: "0.0.0.0", attachPort: 8443, execPort: 8444, healthPort: undefined, redisUrl: "redis://127.0.0.1:6379", advertiseAddr: undefined, tls: undefined,
      heartbeatMs: 15_000, deadlineMs: 45_000, helloDeadlineMs: 10_000, windowBytes: 524_288, legacyBufferBytes: 8_388_608, maxMessageBytes: 16_777_216, baseMaxMessageBytes: 4_194_304,
    });
  });

  it.each([
    ["SH_RELAY_PORT", "http"], ["SH_RELAY_PORT", "70000"], ["SH_RELAY_EXEC_PORT", "-1"], ["SH_RELAY_HEALTH_PORT", "x"], ["SH_RELAY_HEARTBEAT_MS", "0"], ["SH_RELAY_DEADLINE_MS", "soon"],
    ["SH_RELAY_HELLO_DEADLINE_MS", "1.5"], ["SH_RELAY_WINDOW_BYTES", "1"], ["SH_RELAY_LEGACY_BUFFER_BYTES", "0"], ["SH_RELAY_MAX_WORKERS", "0"], ["SH_RELAY_MAX_EXECS", "many"],
    ["SH_RELAY_MAX_MESSAGE_BYTES", "10"], ["SH_RELAY_DRAIN_MS", "-5"], ["SH_RELAY_ADVERTISE_ADDR", "nowhere"], ["REDIS_URL", "http://x"], ["SH_RELAY_TLS_CERT_FILE", "/nonexistent"],
  ])("refuses %s=%s by name", (name, value) => {
    expect(() => readSettings({ ...ok, [name]: value })).toThrow(SettingError);
    expect(() => readSettings({ ...ok, [name]: value })).toThrow(name.startsWith("SH_RELAY_TLS") ? /SH_RELAY_TLS_KEY_FILE is not set/ : new RegExp(name));
  });

  it.each([
    [{ SH_RELAY_PORT: "9000", SH_RELAY_EXEC_PORT: "9000" }, /SH_RELAY_EXEC_PORT=9000 is also SH_RELAY_PORT/],
    [{ SH_RELAY_PORT: "9000", SH_RELAY_HEALTH_PORT: "9000" }, /SH_RELAY_HEALTH_PORT=9000 is also SH_RELAY_PORT/],
    [{ SH_RELAY_DEADLINE_MS: "20000" }, /SH_RELAY_DEADLINE_MS=20000 must be at least twice/],
    [{ SH_RELAY_TLS_CERT_FILE: "/nonexistent", SH_RELAY_TLS_KEY_FILE: "/nonexistent" }, /SH_RELAY_TLS_CERT_FILE="\/nonexistent" cannot be read/],
    [{ SH_RELAY_TLS_CERT_FILE: "/etc/hostname", SH_RELAY_TLS_KEY_FILE: "/etc/hostname" }, /do not hold a matching PEM/],
  ])("refuses %j", (env, message) => {
    expect(() => readSettings({ ...ok, ...env } as Record<string, string>)).toThrow(message);
  });

  it("lets the system choose several ports", () => {
    expect(readSettings({ ...ok, SH_RELAY_PORT: "0", SH_RELAY_EXEC_PORT: "0", SH_RELAY_HEALTH_PORT: "0" })).toMatchObject({ attachPort: 0, execPort: 0, healthPort: 0 });
  });
});
