import { randomUUID } from "node:crypto";
import type { KillResult, Marks } from "../kill/hunt";
import type { ProcFs } from "../kill/procfs";
import type { ExecUser } from "../settings";
import { Cell } from "./cell";
import { MARK } from "./env";
import type { Exit, Launcher, Prepared, RunningCommand } from "./launcher";
import { later, Parked } from "./park";
import type { Spawner } from "./spawner";

/** What a root command keeps: the capabilities Docker gives a container, less those that make devices or change the rest. */
const ROOT_KEEPS = ["chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "net_bind_service", "net_raw", "sys_chroot", "setfcap", "audit_write"];

export interface CellOptions {
  user?: ExecUser;
  /** The worker is root and drops capabilities; otherwise a user namespace stands in. */
  root: boolean;
  masks: () => string[];
  cwd: string;
  env: Record<string, string>;
}

interface Place {
  cell: Cell;
  parked: Parked;
  marks: Marks;
}

/** Runs each command in a cell of its own. A cell that turns out empty afterwards serves the next command. */
export class CellLauncher implements Launcher {
  readonly kind = "pidns";
  private spare: Promise<Place>[] = [];
  private closed = false;

  constructor(
    private readonly options: CellOptions,
    private readonly spawner: Spawner,
    private readonly proc: ProcFs,
    private readonly spares: number,
  ) {}

  async prepare(stdin?: Uint8Array): Promise<Prepared> {
    let place = await this.takeSpare();
    if (place && stdin !== undefined) {
      // The waiting bash has an empty input; the cell is good all the same.
      const { cell } = place;
      place.parked.discard();
      place = await this.park(cell, stdin);
    }
    place ??= await this.place(stdin);
    later(() => this.refill());
    return this.prepared(place);
  }

  close(): void {
    this.closed = true;
    for (const p of this.spare.splice(0)) void p.then((x) => this.drop(x), () => undefined);
  }

  private async takeSpare(): Promise<Place | undefined> {
    for (let next = this.spare.shift(); next; next = this.spare.shift()) {
      const place = await next.catch(() => undefined);
      if (place?.parked.usable && place.cell.usable) return place;
      if (place) this.drop(place);
    }
    return undefined;
  }

  private refill(): void {
    while (!this.closed && this.spare.length < this.spares) this.keep(this.place());
  }

  private keep(next: Promise<Place>): void {
    next.catch(() => undefined);
    this.spare.push(next);
  }

  private drop(place: Place): void {
    place.parked.discard();
    place.cell.discard();
  }

  private async place(stdin?: Uint8Array): Promise<Place> {
    return this.park(await Cell.make(this.spawner, this.options.masks(), !this.options.root), stdin);
  }

  private async park(cell: Cell, stdin?: Uint8Array): Promise<Place> {
    const { user, root, env, cwd } = this.options;
    const marks: Marks = { env: randomUUID() };
    const privileges = user
      ? ["setpriv", `--reuid=${user.uid}`, `--regid=${user.gid}`, "--clear-groups", "--bounding-set=-all", "--no-new-privs"]
      : root
        ? ["setpriv", `--bounding-set=-all,${ROOT_KEEPS.map((c) => `+${c}`).join(",")}`]
        : ["setpriv", "--bounding-set=-all", "--no-new-privs"]; // uid 0 of the user namespace, which is the worker's user, without its powers
    try {
      const parked = await Parked.spawn([...cell.entry(), ...privileges], this.spawner, { cwd, env: { ...env, [MARK]: marks.env }, stdin });
      const p = this.proc.stat(parked.pid);
      if (p) marks.leader = { pid: p.pid, start: p.start };
      return { cell, parked, marks };
    } catch (e) {
      cell.discard();
      throw e;
    }
  }

  private prepared(place: Place): Prepared {
    return {
      marks: place.marks,
      start: (input) => {
        place.parked.release(input);
        return new CellCommand(place, (cell) => later(() => {
          if (!this.closed && this.spare.length <= this.spares) this.keep(this.park(cell));
          else cell.discard();
        }));
      },
      discard: () => this.drop(place),
    };
  }
}

class CellCommand implements RunningCommand {
  readonly exited: Promise<Exit>;
  private killing: Promise<KillResult> | undefined;

  constructor(
    private readonly place: Place,
    private readonly reuse: (cell: Cell) => void,
  ) {
    this.exited = place.parked.exited;
  }

  get stdout() {
    return this.place.parked.stdout;
  }
  get stderr() {
    return this.place.parked.stderr;
  }

  /** Nothing leaves a pid namespace, so there is nothing to remember. */
  observe(): void {}

  kill(): Promise<KillResult> {
    this.killing ??= this.place.cell.kill();
    return this.killing;
  }

  async settle(): Promise<KillResult | undefined> {
    if (this.killing) return this.killing;
    if (this.place.cell.usable && this.place.cell.empty()) {
      this.killing = Promise.resolve({ found: 0, killed: 0, remaining: 0, verified: true, detail: "" });
      this.reuse(this.place.cell);
      return undefined;
    }
    const result = await this.kill();
    return result.found > 0 || !result.verified ? result : undefined;
  }

  killNow(): void {
    this.place.cell.killNow();
  }
}
