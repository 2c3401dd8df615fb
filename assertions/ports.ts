// What the proof needs from the outside, so that every rule of it can be tested against a world that lies.
import type { Duplex } from "node:stream";

/** How much of a log is read: many proofs' worth. */
export const LOG_LINES = 5_000;

export interface ExecOutput {
  stdout: string;
  stderr: string;
  exitCode: number;
}

/** A Knative Service as far as the proof looks at it. */
export interface ArmState {
  /** Plain values of the container's environment; entries that come from a Secret are left out. */
  env: Record<string, string>;
  ready: boolean;
  latestCreated: string;
  latestReady: string;
}

export interface PodRef {
  name: string;
  /** False while it starts. */
  ready?: boolean;
  /** Container ports by name, to resolve a Service's named target port. */
  ports: Record<string, number>;
}

export interface Target {
  namespace: string;
  service: string;
  port: number;
}

/** Every method rejects when the cluster does not answer or refuses; an empty answer is an answer. */
export interface ClusterPort {
  /** API server URL, for messages. */
  readonly server: string;
  version(): Promise<string>;
  runningPods(selector: string): Promise<PodRef[]>;
  exec(pod: string, command: readonly string[], container?: string): Promise<ExecOutput>;
  /** Decoded values of a Secret; undefined when there is none of that name. */
  secret(name: string): Promise<Record<string, string> | undefined>;
  arm(name: string): Promise<ArmState>;
  /** The last lines that the pods behind a Service wrote. */
  log(service: string): Promise<string>;
  /** A byte stream to a Service's pod. No port is opened on this machine. */
  connect(target: Target): Promise<Duplex>;
}

/** What an HTTP call gave back. */
export interface HttpAnswer {
  status: number;
  body: string;
  elapsedMs: number;
}

export interface HarnessPort {
  health(arm: string): Promise<HttpAnswer>;
  run(arm: string, body: unknown): Promise<HttpAnswer>;
}

export interface StorePort {
  /** The store's own clock, ms since epoch: presence is stamped in the cluster, not on this machine. */
  now(): Promise<number>;
  presence(id: string): Promise<string | undefined>;
  /** How many of these keys exist. */
  exists(keys: readonly string[]): Promise<number>;
  close(): Promise<void>;
}

/** What came of asking the model's endpoint for something that costs nothing. Either `status` or `error` is there. */
export interface ModelProbe {
  url: string;
  status?: number;
  error?: string;
}

export interface ModelPort {
  /** Asks from where the harness stands, with its address and credentials. Rejects when there was no way to ask. */
  probe(): Promise<ModelProbe>;
}

/** The parts of `docker inspect` that the proof reads. */
export interface Inspected {
  Id: string;
  Image: string;
  State: { Running: boolean; Status: string };
  Config: { Env: string[] | null };
  HostConfig: {
    NetworkMode: string;
    PidMode?: string;
    IpcMode?: string;
    Privileged?: boolean;
    PublishAllPorts?: boolean;
    PortBindings?: Record<string, unknown> | null;
    Devices?: unknown[] | null;
    VolumesFrom?: unknown[] | null;
  };
  Mounts: unknown[];
  NetworkSettings: { Ports?: Record<string, unknown[] | null> | null };
}

export interface WorkerPort {
  /** Undefined when there is no such container. `raw` is the whole text, to search for what must not be in it. */
  inspect(): Promise<{ parsed: Inspected; raw: string } | undefined>;
  /** Environment that the image itself brings. */
  imageEnv(image: string): Promise<string[]>;
  exec(command: readonly string[], stdin?: string): Promise<ExecOutput>;
  /** The last lines that the container wrote. */
  log(): Promise<string>;
}

export interface World {
  /** How long what is still starting (after a reboot, a restart) may take until it counts as broken; 0 or undefined: it may not. */
  patienceMs?: number;
  /** What a program has written may take this long to be readable in its log; undefined: none at all. */
  logLagMs?: number;
  cluster: ClusterPort;
  harness: HarnessPort;
  store: StorePort;
  model: ModelPort;
  worker: WorkerPort;
}
