import { startRedis } from "@dialout/common/testkit";
import { credentials, status } from "@grpc/grpc-js";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ScriptedWorker, WORKER_TOKEN, startRelayProcess, type RelayProcess } from "./peers";

const dir = mkdtempSync(path.join(tmpdir(), "relay-tls-"));
const tls = { key: path.join(dir, "tls.key"), cert: path.join(dir, "tls.crt") };
let redis: Awaited<ReturnType<typeof startRedis>>;
let secure: RelayProcess;

beforeAll(async () => {
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tls.key, "-out", tls.cert, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], { stdio: "pipe" });
  redis = await startRedis();
  secure = await startRelayProcess(redis.url, { SH_RELAY_TLS_CERT_FILE: tls.cert, SH_RELAY_TLS_KEY_FILE: tls.key });
});
afterAll(async () => {
  await secure.process.stop();
  await redis.stop();
  rmSync(dir, { recursive: true, force: true });
});

it("Attach with TLS: verified by its own CA; a stranger's trust or plaintext gets nowhere", async () => {
  const address = secure.attach.replace("127.0.0.1", "localhost");
  const attach = (to: string, creds = credentials.createInsecure()) => new ScriptedWorker(to, WORKER_TOKEN, {}, creds).hello();
  const ok = attach(address, credentials.createSsl(readFileSync(tls.cert)));
  await ok.got("welcome");
  const stranger = attach(address, credentials.createSsl());
  expect((await stranger.ended()).code).toBe(status.UNAVAILABLE);
  const plain = attach(secure.attach);
  expect((await plain.ended()).code).toBe(status.UNAVAILABLE);
  for (const w of [ok, stranger, plain]) w.close();
});
