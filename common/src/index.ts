export * from "./backoff";
export * from "./log";
export * from "./secrets";
export * from "./settings";
export * from "./shutdown";
