import { createHash, timingSafeEqual } from "node:crypto";

const digest = (s: string) => createHash("sha256").update(s, "utf8").digest();

/** Compares in constant time. An empty or missing secret never matches, not even another empty one. */
export function secretMatches(presented: string | undefined, expected: string | undefined): boolean {
  const same = timingSafeEqual(digest(presented ?? ""), digest(expected ?? ""));
  return same && Boolean(presented) && Boolean(expected);
}

/** The token of an `authorization: Bearer <token>` value, or undefined when it has another form. */
export function bearerToken(header: string | Buffer | undefined): string | undefined {
  const m = /^Bearer (\S+)$/i.exec(String(header ?? ""));
  return m?.[1];
}
