import { randomUUID } from "node:crypto";
import { closeSync, existsSync, fdatasync, fstatSync, fsyncSync, ftruncateSync, mkdirSync, openSync, readdirSync, readFileSync, readSync, renameSync, rmSync, writeFileSync, writeSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import type { Logger } from "@dialout/common";
import type { Outcome } from "../exec/outcome";
import { decodeRecord, encodeRecord, parseJournal, type JournalRecord, type StoredStream } from "./records";

const datasync = promisify(fdatasync);

export interface JournalLimits {
  /** Output kept for replays, all commands together. */
  outputBytes: number;
  /** Ids kept; beyond it the oldest go, but none younger than `minAgeMs`. */
  entries: number;
  minAgeMs: number;
  maxAgeMs: number;
  /** The log is rewritten when it is larger than this and more than half of it is stale. */
  compactBytes: number;
}

export const JOURNAL_LIMITS: JournalLimits = { outputBytes: 256 << 20, entries: 20_000, minAgeMs: 600_000, maxAgeMs: 86_400_000, compactBytes: 16 << 20 };

export interface Finished {
  state: "finished";
  fp: string;
  outcome: Outcome;
  stdout: StoredStream;
  stderr: StoredStream;
}

interface Entry {
  fp: string;
  state: "started" | "interrupted" | "finished";
  /** Monotonic ms of this process; entries read from disk count from the start. Wall-clock steps thus never matter. */
  bornMs: number;
  at: number;
  length: number;
  outputBytes: number;
  files: string[];
}

/** The worker's memory of what it was asked to run. Append-only log with checksums beside the output files it names. */
export class Journal {
  /** Same after a restart on the same disk; new on a new disk and after damage. */
  readonly id: string;
  /** Commands that an earlier worker started and never finished, with their marks. */
  readonly interrupted: Extract<JournalRecord, { t: "started" }>[] = [];
  private readonly entries = new Map<string, Entry>();
  private readonly log: string;
  private fd: number;
  private size: number;
  private live = 0;
  private outputBytes = 0;
  private syncing: Promise<void> | undefined;
  private nextSync: Promise<void> | undefined;

  constructor(
    readonly dir: string,
    private readonly logger: Logger,
    private readonly limits = JOURNAL_LIMITS,
    private readonly now: () => number = () => performance.now(),
  ) {
    mkdirSync(this.outputDir, { recursive: true, mode: 0o700 });
    this.log = path.join(dir, "journal");
    const data = existsSync(this.log) ? readFileSync(this.log) : Buffer.alloc(0);
    const parsed = parseJournal(data);
    this.id = this.identity(parsed.damaged);
    this.fd = openSync(this.log, "a+", 0o600);
    if (parsed.good < data.length) {
      logger.warn({ bytes: data.length - parsed.good }, "the journal ended in a torn record, which is dropped: its command was never started");
      ftruncateSync(this.fd, parsed.good);
    }
    this.size = parsed.good;
    const open = new Map<string, Extract<JournalRecord, { t: "started" }>>();
    for (const { record, at, length } of parsed.records) {
      this.index(record, at, length);
      if (record.t === "started") open.set(record.key, record);
      else open.delete(record.key);
    }
    for (const [key, record] of open) {
      (this.entries.get(key) as Entry).state = "interrupted";
      this.interrupted.push(record);
    }
    this.dropStrayFiles();
    this.trim();
  }

  get outputDir(): string {
    return path.join(this.dir, "output");
  }

  /** What is known of an id: undefined = it was never started. */
  find(key: string): { state: "started" | "interrupted"; fp: string } | Finished | undefined {
    const e = this.entries.get(key);
    if (!e) return undefined;
    if (e.state !== "finished") return { state: e.state, fp: e.fp };
    const line = Buffer.alloc(e.length);
    readSync(this.fd, line, 0, e.length, e.at);
    const r = decodeRecord(line.toString("utf8", 0, e.length - 1));
    if (r?.t !== "finished") throw new Error(`the journal in ${this.dir} cannot be read back`);
    const lost = e.outputBytes === 0;
    const stream = (s: StoredStream): StoredStream => (lost ? { bytes: s.bytes } : s);
    return { state: "finished", fp: r.fp, outcome: r.outcome, stdout: stream(r.stdout), stderr: stream(r.stderr) };
  }

  /** Resolves when the fact is on disk; rejects, with nothing recorded, when it cannot be put there. */
  async started(record: Extract<JournalRecord, { t: "started" }>): Promise<void> {
    this.trim();
    this.append(record);
    try {
      await this.sync();
    } catch (e) {
      this.forget(record.key);
      throw e;
    }
  }

  /** Not forced to disk: if it is lost the command counts as interrupted, which is safe. */
  finished(record: Extract<JournalRecord, { t: "finished" }>): void {
    this.append(record);
    this.trim();
  }

  forget(key: string): void {
    if (this.entries.has(key)) this.append({ t: "forgotten", key });
  }

  close(): void {
    closeSync(this.fd);
  }

  private append(record: JournalRecord): void {
    const bytes = encodeRecord(record);
    const at = this.size;
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(this.fd, bytes, done);
    } catch (e) {
      ftruncateSync(this.fd, at); // half a record in the middle would read as damage
      if (record.t === "forgotten") this.index(record, at, 0);
      throw e;
    }
    this.size += bytes.length;
    this.index(record, at, bytes.length);
  }

  /** One fdatasync serves all who asked before it began. */
  private sync(): Promise<void> {
    if (!this.syncing) {
      this.syncing = datasync(this.fd).finally(() => (this.syncing = undefined));
      return this.syncing;
    }
    this.nextSync ??= this.syncing.catch(() => undefined).then(() => {
      this.nextSync = undefined;
      return this.sync();
    });
    return this.nextSync;
  }

  private index(r: JournalRecord, at: number, length: number): void {
    this.remove(r.key);
    if (r.t === "forgotten") return;
    const entry: Entry = { fp: r.fp, state: "started", bornMs: this.now(), at, length, outputBytes: 0, files: [] };
    if (r.t === "finished") {
      entry.state = "finished";
      entry.files = [r.stdout.file, r.stderr.file].filter((f) => f !== undefined);
      entry.outputBytes = Math.max(1, r.stdout.bytes + r.stderr.bytes);
    }
    this.entries.set(r.key, entry); // re-inserted last: the map's order is age
    this.live += length;
    this.outputBytes += entry.outputBytes;
  }

  private remove(key: string): void {
    const e = this.entries.get(key);
    if (!e) return;
    this.entries.delete(key);
    this.live -= e.length;
    this.dropOutput(e);
  }

  private dropOutput(e: Entry): void {
    this.outputBytes -= e.outputBytes;
    e.outputBytes = 0;
    for (const f of e.files.splice(0)) rmSync(path.join(this.outputDir, f), { force: true });
  }

  private trim(): void {
    if (this.outputBytes > this.limits.outputBytes) {
      for (const e of this.entries.values()) {
        if (this.outputBytes <= this.limits.outputBytes) break;
        if (e.outputBytes > 0) this.dropOutput(e);
      }
    }
    for (const [key, e] of this.entries) {
      const age = this.now() - e.bornMs;
      if (e.state === "started") continue;
      if (!(age > this.limits.maxAgeMs || (this.entries.size > this.limits.entries && age > this.limits.minAgeMs))) break;
      this.remove(key);
    }
    if (this.size > this.limits.compactBytes && this.live < this.size / 2 && !this.syncing) this.compact();
  }

  private compact(): void {
    const temp = `${this.log}.new`;
    try {
      const fd = openSync(temp, "w+", 0o600);
      const moved: [Entry, number][] = [];
      let size = 0;
      for (const e of this.entries.values()) {
        const line = Buffer.alloc(e.length);
        readSync(this.fd, line, 0, e.length, e.at);
        writeSync(fd, line);
        moved.push([e, size]);
        size += e.length;
      }
      fsyncSync(fd);
      closeSync(fd);
      renameSync(temp, this.log);
      closeSync(this.fd);
      this.fd = openSync(this.log, "a+", 0o600);
      for (const [e, at] of moved) e.at = at;
      this.size = this.live = fstatSync(this.fd).size;
    } catch (e) {
      rmSync(temp, { force: true });
      this.logger.warn({ err: e }, "the journal could not be rewritten and stays as it is");
    }
  }

  private identity(damaged: number): string {
    const file = path.join(this.dir, "identity");
    const known = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
    if (damaged === 0 && /^[0-9a-f-]{36}$/.test(known)) return known;
    if (damaged > 0) this.logger.error({ damaged }, "the journal is damaged; it gets a new identity, so that commands whose record may be lost are not run again");
    const id = randomUUID();
    writeFileSync(`${file}.new`, `${id}\n`, { mode: 0o600, flush: true });
    renameSync(`${file}.new`, file);
    return id;
  }

  private dropStrayFiles(): void {
    const named = new Set([...this.entries.values()].flatMap((e) => e.files));
    for (const f of readdirSync(this.outputDir)) if (!named.has(f)) rmSync(path.join(this.outputDir, f), { force: true });
  }
}
