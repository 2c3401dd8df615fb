import { z } from "zod";
import type { Store } from "./redis";

export const verdictSchema = z.object({ item_id: z.string().min(1), verdict: z.enum(["FLAGGED", "CLEAR"]), reason: z.string().min(1) });
export type Verdict = z.infer<typeof verdictSchema>;

/** Where and by whom a verdict came about. */
const bySchema = z.object({
  sandbox: z.object({ kind: z.enum(["pod", "remote", "local"]), name: z.string() }).optional(),
  model: z.object({ provider: z.string(), id: z.string(), served: z.string().optional(), scripted: z.boolean().optional() }).optional(),
});

/** What a session log may hold. `at` is ms since the epoch. */
export const entrySchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("accepted"), at: z.number(), kind: z.string() }),
  z.object({ type: z.literal("started"), at: z.number(), sandbox: z.string(), model: z.string() }),
  z.object({ type: z.literal("tool"), at: z.number(), tool: z.string(), ok: z.boolean(), ms: z.number() }),
  z.object({ type: z.literal("gate"), at: z.number(), gateId: z.string(), summary: z.string(), proposed_action: z.string() }),
  z.object({ type: z.literal("decision"), at: z.number(), gateId: z.string(), action: z.enum(["approve", "reject", "abort"]), feedback: z.string().optional() }),
  z.object({ type: z.literal("verdict"), at: z.number(), verdict: verdictSchema, by: bySchema.optional() }),
  z.object({ type: z.literal("message"), at: z.number(), role: z.enum(["user", "assistant"]), text: z.string() }),
  z.object({ type: z.literal("ended"), at: z.number(), status: z.string(), reason: z.string().optional() }),
]);
export type Entry = z.infer<typeof entrySchema>;
type WithoutTime<E> = E extends unknown ? Omit<E, "at"> : never;

// Number and entry in one step: two writers never compete for an id, and a refused entry uses none up.
const APPEND = `
local n = redis.call('INCR', KEYS[2])
redis.call('XADD', KEYS[1], n .. '-0', 'entry', ARGV[1])
if tonumber(ARGV[2]) > 0 then
  redis.call('EXPIRE', KEYS[1], ARGV[2])
  redis.call('EXPIRE', KEYS[2], ARGV[2])
end
return n`;

/** The log of one session: Redis stream `session:<sid>` with ids `<n>-0`, counter `session:<sid>:seq`. */
export class SessionLog {
  constructor(private readonly store: Store, readonly sid: string, private readonly ttlS: number) {}

  append(entry: WithoutTime<Entry>): Promise<void> {
    const json = JSON.stringify({ ...entry, at: Date.now() });
    return this.store.run(async (r) => void (await r.eval(APPEND, 2, `session:${this.sid}`, `session:${this.sid}:seq`, json, this.ttlS)));
  }

  /** Every entry we understand, oldest first; what another program wrote is skipped. */
  async read(): Promise<Entry[]> {
    const rows = await this.store.run((r) => r.xrange(`session:${this.sid}`, "-", "+"));
    return rows.flatMap(([, fields]) => {
      const at = fields.indexOf("entry");
      if (at < 0) return [];
      try {
        return [entrySchema.parse(JSON.parse(fields[at + 1] ?? ""))];
      } catch {
        return [];
      }
    });
  }

  exists(): Promise<boolean> {
    return this.store.run(async (r) => (await r.exists(`session:${this.sid}`)) === 1);
  }
}

export interface OpenGate {
  gateId: string;
  summary: string;
  proposed_action: string;
}

/** What earlier runs of the session left: a verdict, a gate nobody decided yet, the last decision. */
export interface History {
  verdict?: Verdict;
  by?: z.infer<typeof bySchema>;
  gate?: OpenGate;
  decision?: { gate: OpenGate; action: "approve" | "reject" | "abort"; feedback?: string };
}

export function summarize(entries: readonly Entry[]): History {
  const h: History = {};
  for (const e of entries) {
    if (e.type === "verdict") Object.assign(h, { verdict: e.verdict, by: e.by });
    if (e.type === "gate") h.gate = { gateId: e.gateId, summary: e.summary, proposed_action: e.proposed_action };
    if (e.type === "decision" && h.gate?.gateId === e.gateId) {
      h.decision = { gate: h.gate, action: e.action, feedback: e.feedback };
      h.gate = undefined;
    }
  }
  return h;
}
