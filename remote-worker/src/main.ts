import { runSpawnHelper, SPAWN_HELPER } from "./run/spawnHelper";

// Loaded only when needed: the helper's purpose is to be small.
if (process.argv[2] === SPAWN_HELPER) runSpawnHelper();
else void import("./program.js").then(({ run }) => run());
