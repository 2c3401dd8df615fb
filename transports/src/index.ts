export * from "./errors";
export { KUBECTL_DEFAULTS, KubectlTransport, type KubectlTransportOptions } from "./kubectl";
export type { KubectlTiming } from "./kubectl-exec";
export { GrpcRelayTransport, RELAY_DEFAULTS, type GrpcRelayOptions } from "./relay";
export type { RelayTiming } from "./relay-exec";
export type { RelayTls } from "./relay-link";
export * from "./types";
