import type { Logger } from "@dialout/common";
import type { SandboxTransport } from "@dialout/transports/types";
import { LeafFailure } from "../leaf/result";
import type { Lease, Leases } from "../store/lease";
import type { Store } from "../store/redis";
import { byLoad, capOf, hasLabels, readRecord, relayFor, type Candidate } from "./candidates";
import { KubectlError, podOfSandbox, runningPods } from "./kubectl";
import { NO_SANDBOX, type SandboxSettings } from "./settings";

/** Makes transports. Taken as a parameter so that the pool's own rules can be tested without any. */
export interface Connector {
  pod(pod: string): SandboxTransport;
  remote(sandboxId: string, relayAddr: string): SandboxTransport;
  local(): SandboxTransport;
}

/** A sandbox that belongs to one leaf until `release`. */
export interface Leased {
  kind: "pod" | "remote" | "local";
  name: string;
  cwd: string;
  /** For messages to the model. */
  place: string;
  transport: SandboxTransport;
  /** Closes the transport, then gives the lease back. Idempotent, never rejects. */
  release(): Promise<void>;
}

const PRESENCE = "sh:sandbox:records";
const PLACES = { pod: "pod", remote: "remote sandbox", local: "harness container" } as const;

export class SandboxPool {
  constructor(
    private readonly settings: SandboxSettings,
    private readonly store: Store,
    private readonly leases: Leases,
    private readonly connect: Connector,
    private readonly log: Logger,
  ) {}

  /** A sandbox for the leaf `sid`. Throws LeafFailure `error` (none there) or `saturated` (all taken). */
  async lease(sid: string, signal: AbortSignal): Promise<Leased> {
    try {
      return await this.place(sid, signal);
    } catch (e) {
      if (e instanceof KubectlError) throw new LeafFailure("error", e.message, { cause: e });
      throw e;
    }
  }

  private async place(sid: string, signal: AbortSignal): Promise<Leased> {
    const { placement } = this.settings;
    switch (placement.kind) {
      case "none":
        throw new LeafFailure("error", NO_SANDBOX);
      case "local":
        return this.leased("local", "harness", this.connect.local());
      case "pod":
        return this.leased("pod", placement.pod, this.connect.pod(placement.pod));
      case "name": {
        const pod = await podOfSandbox(this.settings, placement.name, signal);
        return this.leased("pod", pod, this.connect.pod(pod));
      }
      case "pool":
        return this.fromPool(placement.selector, sid, signal);
    }
  }

  private async fromPool(selector: string | undefined, sid: string, signal: AbortSignal): Promise<Leased> {
    const pods = this.settings.pods && selector !== undefined ? await runningPods(this.settings, selector, signal) : [];
    const records = this.settings.records ? await this.records() : [];
    const candidates: Candidate[] = [...pods.map((name) => ({ kind: "pod" as const, name })), ...records];
    const label = selector ?? PRESENCE;
    if (!candidates.length) {
      const also = this.settings.records ? `${this.settings.pods ? ", and" : ":"} no live remote sandbox in ${PRESENCE}. Is a worker attached?` : "";
      throw new LeafFailure("error", this.settings.pods ? `no Running pods for pool selector '${label}'${also}` : `no sandbox to lease${also}`);
    }
    const loads = await Promise.all(candidates.map((c) => this.leases.load(leaseKey(c.name))));
    for (const candidate of byLoad(candidates, loads)) {
      const lease = await this.leases.acquire(leaseKey(candidate.name), capOf(candidate, this.settings.cap), sid);
      if (!lease) continue;
      try {
        return this.leased(candidate.kind, candidate.name, this.open(candidate), lease);
      } catch (e) {
        await lease.release();
        throw e;
      }
    }
    throw new LeafFailure("saturated", `sandbox pool '${label}' saturated: all pods at capacity`);
  }

  private async records(): Promise<Candidate[]> {
    const fields = await this.store.run((r) => r.hgetall(PRESENCE));
    const found: Candidate[] = [];
    for (const [field, json] of Object.entries(fields)) {
      const reading = readRecord(field, json, Date.now(), this.settings.staleMs);
      if (!reading.ok) this.log.warn({ sandbox: field.slice(0, 80), problem: reading.problem }, "presence record ignored");
      else if (hasLabels(reading.record, this.settings.labels)) found.push({ kind: "remote", name: field, record: reading.record });
    }
    // A hash has no order of its own; the same records should be tried in the same order everywhere.
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  private open(candidate: Candidate): SandboxTransport {
    if (candidate.kind === "pod") return this.connect.pod(candidate.name);
    const relay = this.settings.relay!;
    const { addr, refused } = relayFor(candidate.record, relay.addr, relay.allow);
    if (refused) this.log.warn({ sandbox: candidate.name, relayAddr: refused, using: addr }, "the record's relay address is not in SH_RELAY_ADDR_ALLOW");
    return this.connect.remote(candidate.name, addr);
  }

  private leased(kind: Leased["kind"], name: string, transport: SandboxTransport, lease?: Lease): Leased {
    let released: Promise<void> | undefined;
    const release = async () => {
      await transport.close().catch((e: Error) => this.log.warn({ sandbox: name, cause: e.message }, "transport not closed cleanly"));
      await lease?.release();
    };
    return { kind, name, cwd: kind === "local" ? process.cwd() : this.settings.cwd, place: PLACES[kind], transport, release: () => (released ??= release()) };
  }
}

export const leaseKey = (name: string) => `sh:sandbox:${name}:leases`;
