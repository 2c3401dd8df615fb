// For tests only: a command that stops at a known point until it is let go, leaves one line for every time it ran, and whose output is known.
import { until } from "@dialout/common/testkit";
import { readFileSync, writeFileSync } from "node:fs";
import { expect } from "vitest";
import type { ExecOptions, ExecResult, SandboxTransport } from "../types";
import type { World } from "./world";

/** Where the command waits: half of its output is out, or all of it and only the end is missing. */
export type Phase = "mid-output" | "before the end";

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `${from + i}\n`).join("");
const STDOUT = Buffer.from(numbers(1, 40_000));
const STDERR = Buffer.from(numbers(1, 3_000));
const EXIT = 3;
let serial = 0;

export class Phased {
  readonly id = `exec-${process.pid}-${++serial}`;
  readonly outcome: Promise<ExecResult>;
  private stdout = 0;
  private stderr = 0;

  constructor(private readonly world: World, transport: SandboxTransport, readonly phase: Phase, options: ExecOptions = {}) {
    const half = "seq 1 20000; seq 1 3000 >&2";
    const rest = "seq 20001 40000";
    const wait = `until [ -e '${this.go}' ]; do sleep 0.02; done`;
    const steps = phase === "mid-output" ? [half, wait, rest] : [half, rest, wait];
    const command = [`echo ${this.id} >> '${world.file("effects")}'`, `echo $$ > '${world.file(`${this.id}.pid`)}'`, ...steps, `exit ${EXIT}`].join("\n");
    this.outcome = transport.exec(command, { timeout: 100, ...options, onData: (c, s) => void (this[s] += c.length) });
    // Looked at by the test when it is time.
    this.outcome.catch(() => undefined);
  }

  private get go(): string {
    return this.world.file(`${this.id}.go`);
  }

  /** Resolves when every byte that the command wrote before it waits has arrived. */
  async reached(): Promise<void> {
    const out = this.phase === "mid-output" ? Buffer.byteLength(numbers(1, 20_000)) : STDOUT.length;
    const early = this.outcome.then(() => { throw new Error("it ended before it was let go"); });
    await Promise.race([early, until(`${this.id} reaches its phase`, () => this.stdout === out && this.stderr === STDERR.length, 30_000)]);
  }

  letGo(): void {
    writeFileSync(this.go, "");
  }

  /** How often it ran. */
  effects(): number {
    return readFileSync(this.world.file("effects"), "utf8").split("\n").filter((line) => line === this.id).length;
  }

  /** The whole output, byte for byte, its status, and one effect. */
  async expectWhole(): Promise<ExecResult> {
    const r = await this.outcome;
    expect(r.exitCode).toBe(EXIT);
    expect(r.stdout.equals(STDOUT)).toBe(true);
    expect(r.stderr.equals(STDERR)).toBe(true);
    expect([r.truncated, r.stderrTruncated]).toEqual([false, false]);
    expect(this.effects()).toBe(1);
    return r;
  }
}
