export * from "./backoff";
export * from "./http";
export * from "./log";
export * from "./secrets";
export * from "./settings";
export * from "./shutdown";
