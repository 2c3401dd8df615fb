import { z } from "zod";
import { PROVIDERS } from "./model/settings";

/** Ends up in a sandbox path: no line break, no NUL, and a length that fits an argument. */
const path = z.string().min(1).max(4096).regex(/^[^\0\r\n]*$/, "must not hold a NUL or a line break");
const word = (max: number) => z.string().min(1).max(max);

const item = z.object({
  item_id: word(512),
  file: path,
  pattern: word(4096),
  require_approval: z.boolean().optional(),
});

const decision = z.object({
  gateId: word(128),
  action: z.enum(["approve", "reject", "abort"]),
  feedback: z.string().max(16_384).optional(),
});

/** A revision must not look like an option to git. */
const ref = word(512).regex(/^[^-\s\0][^\s\0]*$/, "must be a branch, tag or commit");
const repoUrl = word(2048).regex(/^(https?|ssh|git|file):\/\/[^\s\0]+$|^[\w.-]+@[\w.-]+:[^\s\0]+$/, "must be a repository URL");

const common = {
  sessionId: word(256),
  tenant: word(128).optional(),
  model: word(256).optional(),
  provider: z.enum(PROVIDERS).optional(),
  workspaceRef: path.optional(),
  repoUrl: repoUrl.optional(),
  ref: ref.optional(),
  maxTurns: z.number().int().max(1000).optional(),
  async: z.boolean().optional(),
  workloadId: word(256).optional(),
  env_key: word(256).optional(),
  decision: decision.optional(),
};

const converge = z.object({ ...common, kind: z.literal("converge"), item });
const prompt = z.object({ ...common, kind: z.literal("prompt"), prompt: word(512_000) });
const solve = z.object({ ...common, kind: z.literal("solve"), problemStatement: word(512_000), repoUrl, ref });

/**
 * The body of POST /runs. `kind` defaults to converge; unknown fields are dropped, `sandboxPoolSelector` among them: a caller
 * does not choose where the harness's commands run.
 */
export const envelopeSchema = z
  .preprocess(
    (v) => (typeof v === "object" && v !== null && !Array.isArray(v) ? { kind: "converge", ...v } : v),
    z.discriminatedUnion("kind", [converge, prompt, solve]),
  )
  .refine((e) => e.kind === "solve" || (e.repoUrl === undefined) === (e.ref === undefined), { message: "repoUrl and ref go together", path: ["ref"] });

export type Envelope = z.infer<typeof envelopeSchema>;

/** `maxTurns` as the contract has it: missing or not above zero means the default. */
export const turnLimit = (asked: number | undefined, fallback: number) => (asked === undefined || asked <= 0 ? fallback : asked);

/** Each problem as `path: rule`, without the value: a body may hold anything. */
export function problemsOf(error: z.ZodError): string[] {
  return error.issues.slice(0, 20).map((i) => `${i.path.join(".") || "body"}: ${i.message}`);
}

export const turnSchema = z.object({ prompt: word(512_000), sessionId: word(256).optional() });
