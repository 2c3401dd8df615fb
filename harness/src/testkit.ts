// For tests only: a harness process with a Redis of its own, a model endpoint, and pods that are folders.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { freePort, startProgram, type Running } from "@dialout/common/testkit";

export const ALPINE = 'NAME="Alpine Linux"\nID=alpine\nPRETTY_NAME="Alpine Linux v3.20"\n';
export const REDHAT = 'NAME="Red Hat Enterprise Linux"\nID="rhel"\nPRETTY_NAME="Red Hat Enterprise Linux 9.8 (Plow)"\n';
export const SELECTOR = "sh.kagenti.io/sandbox-pool=default";

/** An absolute path that is another file for every working directory: what a test uses in place of /etc/os-release. */
export const OS_RELEASE = "/proc/self/cwd/os-release";

const SCRIPT = `#!/bin/bash
dir=$(dirname "$0")
echo "$*" | head -n 1 >> "$dir/calls"
if [ "$1" = get ]; then
  [ -e "$dir/get-fails" ] && { cat "$dir/get-fails" >&2; exit 1; }
  case "$*" in
    *" -l ${SELECTOR} "*) cat "$dir/pods.json" ;;
    *) echo '{"items":[]}' ;;
  esac
  exit 0
fi
while [ "$2" != -- ]; do shift; done
pod=$1; shift 2
cd "$dir/pods/$pod" 2>/dev/null || { echo "Error from server (NotFound): pods \\"$pod\\" not found" >&2; exit 1; }
exec env -i PATH="$PATH" HOME="$PWD" SHLVL=1 "$@"
`;

/** A kubectl whose pods are folders: \`get pod\` answers a list, \`exec\` runs in the pod's folder. */
export class FakeCluster {
  readonly dir = mkdtempSync(path.join(tmpdir(), "harness-cluster-"));
  readonly kubectl = path.join(this.dir, "kubectl");

  constructor(pods: Record<string, string> = { "sandbox-0": ALPINE }) {
    writeFileSync(this.kubectl, SCRIPT);
    chmodSync(this.kubectl, 0o755);
    for (const [name, osRelease] of Object.entries(pods)) this.put(name, "os-release", osRelease);
    this.list(Object.keys(pods));
  }

  list(names: string[], extra: object[] = []): void {
    writeFileSync(path.join(this.dir, "pods.json"), JSON.stringify({ items: [...names.map((name) => ({ metadata: { name } })), ...extra] }));
  }

  path(pod: string, file = ""): string {
    return path.join(this.dir, "pods", pod, file);
  }

  put(pod: string, file: string, text: string): void {
    mkdirSync(this.path(pod), { recursive: true });
    writeFileSync(this.path(pod, file), text);
  }

  /** Makes every later \`get\` fail with this text, or work again. */
  failGets(text: string | undefined): void {
    const file = path.join(this.dir, "get-fails");
    if (text === undefined) rmSync(file, { force: true });
    else writeFileSync(file, text);
  }

  calls(): string[] {
    const file = path.join(this.dir, "calls");
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
  }

  remove(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

export interface Answer {
  status: number;
  headers: Headers;
  // A test looks at whatever field it is about.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

export const KEY = "sk-test-very-secret-key";

/** A harness process and what one asks it. */
export class Harness {
  private constructor(readonly process: Running, readonly url: string) {}

  static async start(env: Record<string, string>): Promise<Harness> {
    const process = startProgram("harness", { HOST: "127.0.0.1", PORT: "0", ANTHROPIC_API_KEY: KEY, KAGENTI_SANDBOX_CWD: "/tmp", ...env });
    const line = JSON.parse(await process.line(/harness listening/)) as { port: number };
    return new Harness(process, `http://127.0.0.1:${line.port}`);
  }

  async ask(path: string, body?: unknown, init: RequestInit = {}): Promise<Answer> {
    const post = body === undefined ? {} : { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) };
    const response = await fetch(this.url + path, { ...post, ...init });
    const text = await response.text();
    let parsed: unknown = text;
    try {
      parsed = JSON.parse(text);
    } catch {
      // text as it is
    }
    return { status: response.status, headers: response.headers, body: parsed };
  }

  review(sessionId: string, pattern: string, more: Record<string, unknown> = {}, file = OS_RELEASE): Promise<Answer> {
    return this.ask("/runs", { sessionId, item: { item_id: "i1", file, pattern }, ...more });
  }

  prompt(sessionId: string, prompt: string, more: Record<string, unknown> = {}): Promise<Answer> {
    return this.ask("/runs", { sessionId, kind: "prompt", prompt, ...more });
  }

  status(sessionId: string): Promise<Answer> {
    return this.ask(`/runs/status?sessionId=${encodeURIComponent(sessionId)}`);
  }
}

export async function startModel(env: Record<string, string> = {}): Promise<{ process: Running; url: string }> {
  const process = startProgram("model-endpoint", { HOST: "127.0.0.1", PORT: "0", ...env });
  const line = JSON.parse(await process.line(/model-endpoint listening/)) as { port: number };
  return { process, url: `http://127.0.0.1:${line.port}` };
}

export const WORKER_TOKEN = "worker-token-for-tests";
export const EXEC_TOKEN = "exec-token-for-tests";

/** A relay that comes back on the same two ports. */
export class Relay {
  process!: Running;

  private constructor(private readonly redisUrl: string, readonly attach: string, readonly exec: string, private readonly advertise: boolean) {}

  /** @param advertise it publishes its own address with each worker, as replicas do */
  static async start(redisUrl: string, advertise = false): Promise<Relay> {
    const relay = new Relay(redisUrl, `127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`, advertise);
    await relay.start();
    return relay;
  }

  async start(): Promise<void> {
    this.process = startProgram("relay", {
      SH_RELAY_HOST: "127.0.0.1",
      SH_RELAY_PORT: this.attach.split(":")[1]!,
      SH_RELAY_EXEC_PORT: this.exec.split(":")[1]!,
      SH_RELAY_TOKEN: WORKER_TOKEN,
      SH_RELAY_EXEC_TOKEN: EXEC_TOKEN,
      REDIS_URL: this.redisUrl,
      ...(this.advertise ? { SH_RELAY_ADVERTISE_ADDR: this.exec } : {}),
    });
    await this.process.line(/sandbox-relay listening/);
  }

  /** What a harness needs to use this relay and no pod. */
  env(): Record<string, string> {
    return { KAGENTI_SANDBOX_POOL_SELECTOR: "sh.kagenti.io/sandbox-pool=remote-only", SH_REMOTE_SANDBOX: "1", SH_RELAY_ADDR: this.exec, SH_RELAY_EXEC_TOKEN: EXEC_TOKEN };
  }
}
