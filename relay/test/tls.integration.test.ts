import { startRedis } from "@dialout/common/testkit";
import { credentials, status } from "@grpc/grpc-js";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ScriptedWorker, WORKER_TOKEN, startRelayProcess, type RelayProcess } from "./peers";

const dir = mkdtempSync(path.join(tmpdir(), "relay-tls-"));
const tls = { key: path.join(dir, "tls.key"), cert: path.join(dir, "tls.crt") };
let redis: Awaited<ReturnType<typeof startRedis>>;
let secure: RelayProcess;

function makePair({ key, cert }: typeof tls) {
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], { stdio: "pipe" });
}

beforeAll(async () => {
  makePair(tls);
  redis = await startRedis();
  secure = await startRelayProcess(redis.url, { SH_RELAY_TLS_CERT_FILE: tls.cert, SH_RELAY_TLS_KEY_FILE: tls.key, SH_RELAY_TLS_RELOAD_MS: "50" });
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

it("a renewed certificate counts for the next connection; a broken one changes nothing; who is attached stays so", async () => {
  const address = secure.attach.replace("127.0.0.1", "localhost");
  const attach = (ca: Buffer) => new ScriptedWorker(address, WORKER_TOKEN, { "grpc.use_local_subchannel_pool": 1 }, credentials.createSsl(ca)).hello({ sandboxId: `sbx-${randomUUID()}` });
  const old = readFileSync(tls.cert);
  const first = attach(old);
  await first.got("welcome");

  // As a renewal looks between its two files: the new certificate with the old key.
  const renewed = { key: path.join(dir, "next.key"), cert: path.join(dir, "next.crt") };
  makePair(renewed);
  renameSync(renewed.cert, tls.cert);
  await secure.process.line(/cannot be used \(.*key values mismatch/);
  const meanwhile = attach(old);
  await meanwhile.got("welcome");

  renameSync(renewed.key, tls.key);
  await secure.process.line(/certificate was renewed/);
  const second = attach(readFileSync(tls.cert));
  await second.got("welcome");
  const stale = attach(old);
  expect((await stale.ended()).code).toBe(status.UNAVAILABLE);
  expect(first.status).toBeUndefined();
  for (const w of [first, meanwhile, second, stale]) w.close();
});
