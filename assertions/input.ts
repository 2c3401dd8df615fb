import { SANDBOX_ID, SANDBOX_ID_RULE, SettingError } from "@dialout/common";
import { z } from "zod";

const name = z.string().regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, "must be a Kubernetes name (lower case letters, digits, '-', '.')");
const port = z.number().int().min(1).max(65535);
// No set-based expressions: the harness hands the text to `kubectl -l`, and equality is all it needs.
const selector = z.string().regex(/^[A-Za-z0-9./_-]+=[A-Za-z0-9._-]+(,[A-Za-z0-9./_-]+=[A-Za-z0-9._-]+)*$/, "must be KEY=VALUE[,KEY=VALUE]");
const optionalText = z.string().optional().transform((v) => v || undefined);

/** What a proof needs to know. Everything else it finds out itself. */
export const ProofInput = z.object({
  /** Text of a kubeconfig (not a path). Secret. */
  kubeconfig: z.string().min(1, "is empty"),
  /** Context in it; its current context when left out (fine for a kubeconfig that the stack itself made). */
  context: optionalText,
  namespace: name.default("default"),
  /** Names of the three Knative Services of the A/B. */
  arms: z.object({ pods: name, remote: name, miswired: name }),
  /** Requests carry `Host: <ksvc>.<namespace>.<domain>`. */
  domain: name.default("example.com"),
  ingress: z.object({ namespace: name, service: name, port }),
  redis: z.object({ service: name, port, password: optionalText }),
  poolSelector: selector,
  remoteSelector: selector,
  worker: z.object({ container: z.string().min(1), id: z.string().regex(SANDBOX_ID, `must be ${SANDBOX_ID_RULE}`) }),
  /** Service and Secret of the relay. */
  relay: z.object({ service: name, execPort: port, secret: name }).default({ service: "sandbox-relay", execPort: 8444, secret: "sh-relay-token" }),
  /** Fixed patterns; each one left out is chosen from the two os-release files. */
  patterns: z.object({ pods: optionalText, remote: optionalText }).default({ pods: undefined, remote: undefined }),
  /** `label` is shown wherever a verdict is; address and credentials are those of the harness itself. */
  model: z.object({ label: z.string().min(1), scripted: z.boolean() }),
});
export type ProofInput = z.infer<typeof ProofInput>;

/** Checks an input at the edge. Throws SettingError with every broken rule; values are not shown, they may be secret. */
export function parseInput(raw: unknown): ProofInput {
  const parsed = ProofInput.safeParse(raw);
  if (parsed.success) return parsed.data;
  const list = parsed.error.issues.map((i) => `${i.path.join(".") || "input"}: ${i.message}`).join("; ");
  throw new SettingError(`the proof's input is not usable: ${list}. Its shape is in assertions/input.ts; try: node assertions/dist/run.cjs prove --help`);
}
