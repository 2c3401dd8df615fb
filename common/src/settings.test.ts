import { describe, expect, it } from "vitest";
import { SANDBOX_ID, SettingError, Settings } from "./settings";

describe("Settings", () => {
  const of = (env: Record<string, string>) => new Settings(env);

  it("treats an empty variable as unset", () => {
    expect(of({ A: "" }).string("A", "x")).toBe("x");
  });

  it.each(["1.5", "abc", "0x10", "-1", "99999", "1e3", " "])("refuses %s as a port and names variable, value and rule", (v) => {
    expect(() => of({ P: v }).port("P", 8443)).toThrow(SettingError);
    expect(() => of({ P: v }).port("P", 8443)).toThrow(/P=.*0 to 65535/);
  });

  it.each(["localhost", "host:0", "host:70000", "http://h:1", "a b:1", ":80"])("refuses %s as host:port", (v) => {
    expect(() => of({ R: v }).hostPort("R")).toThrow(/HOST:PORT/);
  });

  it.each(["localhost:8443", "[::1]:8443", "relay.default.svc:443"])("takes %s as host:port", (v) => {
    expect(of({ R: v }).hostPort("R")).toBe(v);
  });

  it("never shows a Redis URL in its error", () => {
    expect(() => of({ REDIS_URL: "http://u:hunter2@h" }).redisUrl()).toThrow(/^(?!.*hunter2).*REDIS_URL/);
  });
});

describe("SANDBOX_ID", () => {
  it.each(["", "-a", "a-", "a b", "a\n", "a".repeat(64), "../x", "a:b", "é"])("refuses %j", (id) => {
    expect(SANDBOX_ID.test(id)).toBe(false);
  });
  it.each(["a", "sbx-laptop-demo", "A.b_c-1", "a".repeat(63)])("takes %j", (id) => {
    expect(SANDBOX_ID.test(id)).toBe(true);
  });
});
