// Whatever a relay sends, a command settles: with a result, or with a TransportError. Nothing hangs, nothing ends the process.
import type { Exec, ExecEvent, KillReport } from "@dialout/proto";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { TransportError } from "./errors";
import { GrpcRelayTransport } from "./relay";
import { countFrom, seedFrom } from "./testkit/random";
import { accepted, chunk, end, error, fail, ScriptedRelay, type ExecCall } from "./testkit/scripted-relay";

const seed = seedFrom("FUZZ_SEED");
const numRuns = countFrom("FUZZ_RUNS", 60);

type Step = { say: (x: Exec) => ExecEvent | Buffer } | { close: number };

const text = fc.string({ maxLength: 60 });
const uint64 = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.bigInt({ min: 0n, max: 20n }));
const kill: fc.Arbitrary<KillReport | undefined> = fc.option(fc.record({ found: fc.nat(9), killed: fc.nat(9), remaining: fc.nat(9), verified: fc.boolean(), detail: text }), { nil: undefined });
const codes = fc.oneof(text, fc.constantFrom("timeout", "aborted", "interrupted", "busy", "collision", "spawn", "disconnected", "journal_mismatch", "output_lost", "resource_exhausted", "invalid"));
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.constant<Step>({ say: accepted }),
  fc.tuple(fc.uint8Array({ maxLength: 40 }), fc.oneof(fc.nat(40), fc.nat(2 ** 40)), fc.nat(5)).map(([data, at, stream]): Step => ({ say: (x) => chunk(x, Buffer.from(data), at, stream) })),
  fc.tuple(fc.integer({ min: -300, max: 300 }), uint64, uint64, fc.boolean(), fc.boolean(), kill).map(([code, stdoutBytes, stderrBytes, stdoutTruncated, replayed, k]): Step => ({ say: (x) => end(x, code, { stdoutBytes, stderrBytes, stdoutTruncated, replayed, kill: k }) })),
  fc.tuple(text, codes, kill).map(([message, code, k]): Step => ({ say: (x) => error(x, message, code, { kill: k }) })),
  fc.uint8Array({ maxLength: 200 }).map((b): Step => ({ say: () => Buffer.from(b) })),
  fc.nat(20).map((code): Step => ({ close: code })),
);

let relay: ScriptedRelay;
let script: Step[] = [];
beforeAll(async () => {
  process.stdout.write(`fuzz: seed ${seed}, ${numRuns} inputs each\n`);
  const play = (x: Exec, call: ExecCall) => {
    for (const s of script) {
      if ("say" in s) call.write(s.say(x) as ExecEvent);
      else return void (s.close === 0 ? call.end() : fail(call, s.close, "scripted"));
    }
  };
  relay = await new ScriptedRelay({ describe: () => ({}), exec: play }).start();
});
afterAll(() => relay?.kill());

it("a command settles whatever it is told", async () => {
  const surprises: unknown[] = [];
  const note = (e: unknown) => void surprises.push(e);
  process.on("uncaughtException", note);
  process.on("unhandledRejection", note);
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 6 }), fc.option(fc.nat(50), { nil: undefined }), async (steps, abortAfter) => {
      script = steps;
      const t = new GrpcRelayTransport({ addr: relay.addr, sandboxId: "s", graceMs: 250, connectMs: 250, abortWaitMs: 150, slackMs: 50, floodMs: 50 });
      try {
        const r = await t.exec("c", { timeout: 0.4, outputCap: 30, signal: abortAfter === undefined ? undefined : AbortSignal.timeout(abortAfter) });
        expect(r.truncated && r.exitCode !== null).toBe(false);
        expect(r.stdout.length).toBeLessThan(60);
      } catch (e) {
        if (!(e instanceof TransportError)) throw e;
      } finally {
        await t.close();
      }
    }),
    { seed, numRuns, endOnFailure: true },
  );
  process.off("uncaughtException", note);
  process.off("unhandledRejection", note);
  expect(surprises).toEqual([]);
});
