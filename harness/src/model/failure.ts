import { APICallError, RetryError } from "ai";
import { endpointOf, secretsOf, variablesOf } from "./provider";
import type { ModelSettings, Provider } from "./settings";

/** Follows `cause` to the error that says most: a system code, else the last message. */
function rootCause(error: unknown): string {
  let text = "";
  for (let e = error, depth = 0; e instanceof Error && depth < 8; depth++) {
    const { code } = e as NodeJS.ErrnoException;
    if (code) return `${code}${e.message && !e.message.includes(code) ? `: ${e.message}` : ""}`;
    if (e instanceof AggregateError && e.errors.length) {
      e = e.errors[0] as unknown;
      continue;
    }
    text = e.message || text;
    e = e.cause;
  }
  return text || String(error);
}

/** What an endpoint wrote as its reason: `error.message` of the usual JSON forms, else the start of the body. */
function wroteAs(body: string | undefined): string {
  if (!body) return "";
  try {
    const v = JSON.parse(body) as { error?: { type?: string; message?: string } | string; message?: string };
    if (typeof v.error === "string") return v.error;
    const said = v.error?.message ?? v.message;
    if (said) return v.error?.type ? `${v.error.type}: ${said}` : said;
  } catch {
    // not JSON: shown as it is
  }
  return body.replace(/\s+/g, " ").trim();
}

/**
 * One sentence for a failed model call: which URL, which HTTP status or cause, how often it was tried, what to check. Keys
 * are blanked wherever an endpoint repeats them.
 */
export function describeModelFailure(error: unknown, m: ModelSettings, provider: Provider, id: string): string {
  const retried = RetryError.isInstance(error) ? error : undefined;
  const last: unknown = retried ? retried.lastError : error;
  const tries = retried && retried.errors.length > 1 ? ` (${retried.errors.length} tries)` : "";
  const vars = variablesOf[provider];
  let text: string;
  if (APICallError.isInstance(last) && last.statusCode !== undefined) {
    const said = wroteAs(last.responseBody).slice(0, 400) || last.message;
    const advice = last.statusCode === 401 || last.statusCode === 403 ? `Check ${vars.key}` : last.statusCode === 404 ? `Check the model id ${JSON.stringify(id)} and ${vars.url}` : `Check ${vars.url}`;
    text = `model endpoint ${bare(last.url)} answered HTTP ${last.statusCode}${tries}: ${said}. ${advice}`;
  } else if (last instanceof Error && last.name === "TimeoutError") {
    text = `model endpoint ${endpointOf(m, provider)} did not answer within ${m.timeoutMs} ms. Check ${vars.url}, or raise SH_MODEL_TIMEOUT_MS`;
  } else if (APICallError.isInstance(last)) {
    text = `model endpoint ${bare(last.url)} cannot be reached${tries}: ${rootCause(last)}. Check ${vars.url}`;
  } else {
    text = `the model call to ${endpointOf(m, provider)} failed${tries}: ${rootCause(last)}`;
  }
  return secretsOf(m).reduce((t, secret) => t.replaceAll(secret, "[redacted]"), text);
}

/** Without query and credentials. */
function bare(url: string): string {
  try {
    const u = new URL(url);
    return u.origin + u.pathname;
  } catch {
    return "(unknown URL)";
  }
}
