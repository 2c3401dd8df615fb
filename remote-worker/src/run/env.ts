import { readFileSync } from "node:fs";
import type { Env } from "@dialout/common";
import { isSecretName, type ExecUser } from "../settings";

/** The variable that marks every process of one command; see kill/hunt.ts. */
export const MARK = "DIALOUT_EXEC_MARK";

const KEPT = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|TMPDIR|SSL_CERT_FILE|SSL_CERT_DIR)$/;

export interface Account {
  name: string;
  home: string;
}

/** The entry of a uid in the text of /etc/passwd. */
export function accountOf(passwd: string, uid: number): Account | undefined {
  for (const line of passwd.split("\n")) {
    const f = line.split(":");
    if (f.length >= 7 && f[2] === String(uid)) return { name: f[0] as string, home: f[5] as string };
  }
  return undefined;
}

/**
 * The environment of commands: a short list of harmless variables plus those the owner named in SANDBOX_ENV_PASS. Everything
 * else stays out, since the worker's surroundings hold its token and often other people's keys.
 */
export function commandEnv(env: Env, pass: string[], user: ExecUser | undefined, cwd: string): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [k, v] of Object.entries(env)) {
    if (v !== undefined && !isSecretName(k) && (KEPT.test(k) || pass.includes(k))) out[k] = v;
  }
  out.PATH ??= "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  if (user) {
    let account: Account | undefined;
    try {
      account = accountOf(readFileSync("/etc/passwd", "utf8"), user.uid);
    } catch {
      // no passwd file: the working directory serves as home
    }
    out.HOME = account?.home ?? cwd;
    out.USER = out.LOGNAME = account?.name ?? String(user.uid);
  }
  return out;
}
