import { spawn, type ChildProcess } from "node:child_process";
import { unlinkSync } from "node:fs";
import type { Writable } from "node:stream";
import type { Exit } from "./launcher";
import { PipeFolder, type Fifo, type PipeReader } from "./pipes";
import { SPAWN_HELPER, type Ask, type Tell } from "./spawnHelper";

export interface SpawnOptions {
  /** The program and its arguments. */
  argv: string[];
  env: Record<string, string>;
  /** What `Spawned.control` writes to: 0 = standard input, 3 = a descriptor of its own. */
  controlFd: 0 | 3;
  /** For `controlFd` 3: what standard input holds; empty without it. */
  stdin?: Uint8Array;
}

/** A process that runs in the root folder and in a session of its own. */
export interface Spawned {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  /** Not ended as far as is known. */
  readonly living: boolean;
  readonly stdout: PipeReader;
  readonly stderr: PipeReader;
  readonly control: Writable;
}

type Without<T, K extends string> = T extends unknown ? Omit<T, K> : never;
interface Waiting {
  resolve(pid: number | undefined): void;
  reject(e: Error): void;
}

/** Starts processes by way of a small helper process (spawnHelper.ts). */
export class Spawner {
  /** Resolves, with what is known of the cause, when the helper ended unasked: nothing can be told of the processes then. */
  readonly lost: Promise<string>;
  private readonly waiting = new Map<number, Waiting>();
  private readonly running = new Map<number, (exit: Exit) => void>();
  private readonly pipes: PipeFolder;
  private closed = false;
  private n = 0;

  private constructor(private readonly helper: ChildProcess, dir: string) {
    this.pipes = new PipeFolder(dir, async (files) => void (await this.ask({ t: "mkfifo", files })));
    helper.on("message", (m: Exclude<Tell, { t: "ready" }>) => this.told(m));
    this.lost = new Promise((resolve) => {
      helper.once("exit", (code, signal) => {
        for (const w of this.waiting.values()) w.reject(new Error("the helper that starts processes has ended"));
        if (!this.closed) resolve(signal ?? `exit code ${code}`);
      });
    });
  }

  /** @param dir a folder for the pipes, emptied here; commands must not be able to read it */
  static async start(dir: string): Promise<Spawner> {
    const script = process.argv[1];
    if (script === undefined) throw new Error("the worker does not know its own program file");
    // Nothing of the worker's surroundings: they hold its token.
    const helper = spawn(process.execPath, [script, SPAWN_HELPER], { stdio: ["ignore", "inherit", "inherit", "ipc"], env: { PATH: process.env.PATH }, cwd: "/" });
    await new Promise<void>((resolve, reject) => {
      helper.once("message", () => resolve());
      helper.on("error", reject);
      helper.once("exit", (code, signal) => reject(new Error(`the helper that starts processes ended with ${signal ?? code}`)));
    });
    return new Spawner(helper, dir);
  }

  get pid(): number {
    return this.helper.pid as number;
  }

  async spawn({ argv, env, controlFd, stdin }: SpawnOptions): Promise<Spawned> {
    const [file, ...args] = argv as [string, ...string[]];
    const fifos: Fifo[] = [];
    let input: string | undefined;
    const ends: { destroy(): unknown }[] = [];
    try {
      for (let i = 0; i < 3; i++) fifos.push(await this.pipes.take());
      const [out, err, ctl] = fifos as [Fifo, Fifo, Fifo];
      if (stdin?.length) input = this.pipes.input(stdin);
      const stdout = out.reader(), stderr = err.reader(), control = ctl.writer();
      ends.push(stdout, stderr, control);
      let ended: (exit: Exit) => void = () => undefined;
      const spawned = { pid: 0, living: true, stdout, stderr, control, exited: new Promise<Exit>((resolve) => (ended = resolve)) };
      spawned.pid = (await this.ask({ t: "spawn", file, args, env, stdin: input, stdout: out.file, stderr: err.file, control: ctl.file, controlFd }, (exit) => {
        spawned.living = false;
        ended(exit);
      })) as number;
      return spawned;
    } catch (e) {
      for (const end of ends) end.destroy();
      throw e;
    } finally {
      for (const f of fifos) f.release();
      if (input !== undefined) unlinkSync(input);
    }
  }

  /** Ends the helper. Processes go on. */
  close(): void {
    this.closed = true;
    if (this.helper.connected) this.helper.disconnect();
  }

  private ask(what: Without<Ask, "id">, ended?: (exit: Exit) => void): Promise<number | undefined> {
    const id = ++this.n;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      if (ended) this.running.set(id, ended);
      this.helper.send({ ...what, id } as Ask, (e) => {
        if (e) this.told({ t: "failed", id, message: e.message });
      });
    });
  }

  private told(m: Exclude<Tell, { t: "ready" }>): void {
    if (m.t === "exit") {
      this.running.get(m.id)?.(m.signal === null ? { code: m.code ?? 0 } : { signal: m.signal });
      this.running.delete(m.id);
      return;
    }
    const waiting = this.waiting.get(m.id);
    this.waiting.delete(m.id);
    if (m.t === "done") return waiting?.resolve(m.pid);
    this.running.delete(m.id);
    waiting?.reject(Object.assign(new Error(m.message), { code: m.code }));
  }
}
