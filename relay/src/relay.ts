import { SettingError, type Logger, type Program } from "@dialout/common";
import { experimental, Server, ServerCredentials, type ServerOptions } from "@grpc/grpc-js";
import type { Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { AttachService, logEnded } from "./attach";
import { callerAuth } from "./caller-auth";
import { CertificateFiles } from "./certificate";
import type { RelayContext } from "./context";
import { ExecService } from "./exec";
import { createHealthServer } from "./health";
import { Metrics } from "./metrics";
import { Presence } from "./presence";
import { RedisPresenceStore } from "./presence-store";
import { SessionRegistry } from "./registry";
import { RawExecService, RawWorkerService } from "./services";
import type { RelaySettings } from "./settings";
import { refuse } from "./status";
import { noWorkerTokens } from "./tokens";

/** After the drain: time to hand out the last statuses and to clean up in Redis. */
const CLOSE_MS = 2_000;

export interface Relay extends Program {
  readonly ports: { attach: number; exec: number; health: number | undefined };
}

/** Starts the listeners. Redis may be away: presence follows when it is back. */
export async function startRelay(settings: RelaySettings, log: Logger): Promise<Relay> {
  warnAboutTokens(settings, log);
  const now = () => performance.now();
  const store = new RedisPresenceStore(settings.redisUrl, log);
  const registry = new SessionRegistry(settings, settings.maxWorkers, now());
  const meter = { bytes: 0, routes: 0 };
  const metrics = new Metrics({ attached: () => registry.size, inFlight: () => meter.routes, queue: meter, redisUp: () => store.up });
  const presence = new Presence(store, settings.advertiseAddr, settings.deadlineMs / 3, metrics, log);
  const relay: RelayContext = { settings, registry, presence, metrics, meter, log, draining: false, openCalls: 0, now };

  const attachService = new AttachService(relay);
  const attachServer = new Server(serverOptions(settings));
  attachServer.addService(RawWorkerService, { attach: attachService.attach });
  const execService = new ExecService(relay);
  const execServer = new Server({ ...serverOptions(settings), interceptors: [callerAuth(settings.exec, (path, peer, reason) => {
    const method = path.slice(path.lastIndexOf("/") + 1);
    metrics.refused.inc({ method, reason });
    log.warn({ peer, method, reason }, `${method} refused: missing or wrong exec token`);
  })] });
  execServer.addService(RawExecService, { exec: execService.exec, abort: execService.abort, describe: execService.describe });
  const health = createHealthServer(metrics, () => ({ ready: !relay.draining, redis: store.up ? "reachable" : "unreachable", attached: registry.size }));

  const sweep = setInterval(() => registry.sweep(now(), (session, why) => {
    metrics.refused.inc({ method: "Attach", reason: why.reason });
    logEnded(log, session, why);
    attachService.ended(session, why.details);
  }), registry.sweepMs);

  try {
    const attachCredentials = settings.tls
      ? experimental.createCertificateProviderServerCredentials(new CertificateFiles(settings.tls, settings.tls.pair, settings.tls.reloadMs, log), null, false)
      : ServerCredentials.createInsecure();
    const exec = await bindGrpc(execServer, "SH_RELAY_EXEC_PORT", settings.host, settings.execPort, ServerCredentials.createInsecure());
    const healthPort = settings.healthPort === undefined ? undefined : await bindHttp(health, settings.host, settings.healthPort);
    const attach = await bindGrpc(attachServer, "SH_RELAY_PORT", settings.host, settings.attachPort, attachCredentials);
    log.info({ port: exec, auth: settings.exec.required }, `sandbox-relay exec listening on :${exec}`);
    if (healthPort !== undefined) log.info({ port: healthPort }, `sandbox-relay health listening on :${healthPort}`);
    // Last, and with this text: whoever waits for it may then use every listener.
    log.info({ port: attach, tls: settings.tls !== undefined }, `sandbox-relay listening on :${attach}`);
    return { ports: { attach, exec, health: healthPort }, stop };
  } catch (e) {
    clearInterval(sweep);
    await closeAll();
    throw e;
  }

  async function stop(bound: AbortSignal): Promise<void> {
    relay.draining = true;
    await untilIdle(relay, bound);
    const left = meter.routes;
    registry.closeAll(refuse.shuttingDown(), refuse.shuttingDown());
    await closeAll();
    log.info({ execs_left: left }, "relay stopped");
  }

  async function closeAll(): Promise<void> {
    clearInterval(sweep);
    await Promise.all([presence.stop(CLOSE_MS), closeGrpc(attachServer), closeGrpc(execServer), new Promise<void>((resolve) => {
      health.close(() => resolve());
      health.closeAllConnections();
    })]);
  }
}

function warnAboutTokens(settings: RelaySettings, log: Logger): void {
  if (noWorkerTokens(settings.worker)) {
    log.warn("no worker token is configured, so every Attach is refused. Set SH_RELAY_TOKEN, SH_RELAY_TOKEN_<sandbox_id> or SH_RELAY_TOKEN_DIR");
  }
  if (!settings.exec.required) {
    log.warn("SH_RELAY_EXEC_AUTH=off: whoever reaches the exec port can run commands on every worker. Only for callers that send no credentials, behind a network policy");
  }
}

function serverOptions(settings: RelaySettings): ServerOptions {
  return {
    "grpc.max_receive_message_length": settings.maxMessageBytes,
    // Nobody asks for it, and its bookkeeping is paid for every message.
    "grpc.enable_channelz": 0,
    // Pings find peers that are frozen or gone, base ones too; both together stay within the deadline.
    "grpc.keepalive_time_ms": settings.heartbeatMs,
    "grpc.keepalive_timeout_ms": settings.deadlineMs - settings.heartbeatMs,
    "grpc.keepalive_permit_without_calls": 1,
  };
}

function inUse(setting: string, port: number, e: unknown): never {
  throw new SettingError(`${setting}=${port} cannot be bound (${(e as Error).message}): choose a free port of this machine, and an address of it in SH_RELAY_HOST. For example: ${setting}=${port + 1}`);
}

async function bindGrpc(server: Server, setting: string, host: string, port: number, credentials: ServerCredentials): Promise<number> {
  const address = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  try {
    return await new Promise<number>((resolve, reject) => server.bindAsync(`${address}:${port}`, credentials, (e, bound) => (e ? reject(e) : resolve(bound))));
  } catch (e) {
    return inUse(setting, port, e);
  }
}

async function bindHttp(server: HttpServer, host: string, port: number): Promise<number> {
  try {
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host.replace(/^\[|\]$/g, ""), resolve));
  } catch (e) {
    return inUse("SH_RELAY_HEALTH_PORT", port, e);
  }
  return (server.address() as AddressInfo).port;
}

/** Resolves when no exec runs and none hands out output any more, or when `bound` fires. */
function untilIdle(relay: RelayContext, bound: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (!bound.aborted && (relay.openCalls > 0 || relay.meter.routes > 0)) return;
      clearInterval(timer);
      resolve();
    };
    const timer = setInterval(look, 25);
    look();
  });
}

async function closeGrpc(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => {
      server.forceShutdown();
      resolve();
    }, CLOSE_MS);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
