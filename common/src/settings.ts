/** A setting that the user must change. Programs print `message` and exit with code 3; never a stack trace. */
export class SettingError extends Error {
  override readonly name = "SettingError";
}

export type Env = Readonly<Record<string, string | undefined>>;

/** Shows a value in an error message: quoted, at most 60 characters. Never pass a secret. */
export function show(value: string): string {
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value);
}

/** Reads settings from the environment. Every error names the variable, its value, the rule, and an example that works. */
export class Settings {
  constructor(private readonly env: Env) {}

  /** The value, or undefined when the variable is unset. An empty string counts as unset unless `keepEmpty`. */
  raw(name: string, keepEmpty = false): string | undefined {
    const v = this.env[name];
    return v === undefined || (v === "" && !keepEmpty) ? undefined : v;
  }

  string(name: string, fallback: string): string;
  string(name: string, fallback?: string): string | undefined;
  string(name: string, fallback?: string): string | undefined {
    return this.raw(name) ?? fallback;
  }

  required(name: string, why: string, example: string): string {
    const v = this.raw(name);
    if (v === undefined) throw new SettingError(`${name} is not set: ${why}. Set it, for example: ${name}=${example}`);
    return v;
  }

  int(name: string, fallback: number, range: { min: number; max: number }): number {
    const v = this.raw(name);
    if (v === undefined) return fallback;
    const n = Number(v);
    if (!/^-?\d+$/.test(v.trim()) || !Number.isSafeInteger(n) || n < range.min || n > range.max) {
      throw new SettingError(`${name}=${show(v)} must be a whole number from ${range.min} to ${range.max}. For example: ${name}=${fallback}`);
    }
    return n;
  }

  /** A TCP port to bind; 0 lets the system choose. */
  port(name: string, fallback: number): number {
    return this.int(name, fallback, { min: 0, max: 65535 });
  }

  oneOf<T extends string>(name: string, allowed: readonly T[], fallback: T): T {
    const v = this.raw(name);
    if (v === undefined) return fallback;
    if (!(allowed as readonly string[]).includes(v)) {
      throw new SettingError(`${name}=${show(v)} must be one of ${allowed.join(", ")}. For example: ${name}=${fallback}`);
    }
    return v as T;
  }

  /** `host:port` of a peer to dial; an IPv6 host stands in brackets. */
  hostPort(name: string, fallback?: string): string {
    const v = this.raw(name) ?? fallback;
    if (v === undefined) throw new SettingError(`${name} is not set: it must be HOST:PORT. For example: ${name}=localhost:8443`);
    const m = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/.exec(v);
    const port = Number(m?.[1]);
    if (!m || port < 1 || port > 65535) throw new SettingError(`${name}=${show(v)} must be HOST:PORT. For example: ${name}=localhost:8443`);
    return v;
  }

  /** A Redis URL. The error leaves the value out: it may hold a password. */
  redisUrl(name = "REDIS_URL", fallback = "redis://127.0.0.1:6379"): string {
    const v = this.raw(name) ?? fallback;
    let url: URL | undefined;
    try {
      url = new URL(v);
    } catch {
      // falls through to the one message below
    }
    if (!url || !/^rediss?:$/.test(url.protocol) || !url.hostname) {
      throw new SettingError(`${name} must be redis://[user:password@]HOST[:PORT][/DB]. For example: ${name}=redis://127.0.0.1:6379`);
    }
    return v;
  }
}

/** Sandbox ids become Redis keys, environment names and log fields; this is the one rule for them all. */
export const SANDBOX_ID = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
export const SANDBOX_ID_RULE = "1 to 63 characters of A-Z a-z 0-9 . _ -, starting and ending with a letter or digit";
