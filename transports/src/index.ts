export * from "./errors";
export * from "./relay";
export type { RelayTiming } from "./relay-exec";
export type { RelayTls } from "./relay-link";
export * from "./types";
