import { defineConfig } from "vitest/config";

const ignore = ["**/node_modules/**", "**/dist/**", ".lab/**", ".cache/**"];
const project = (name: string, include: string[], extra: Record<string, unknown> = {}) => ({
  test: { name, include, exclude: ignore, ...extra },
});

// Which suite a test belongs to is in its file name: *.test.ts needs nothing, *.integration.test.ts a Redis server and real
// processes, the others a special run of their own.
export default defineConfig({
  test: {
    projects: [
      project("unit", ["**/*.test.ts"], { exclude: [...ignore, "**/*.{integration,e2e,faults,history,fuzz,conformance}.test.ts"], testTimeout: 20_000 }),
      project("integration", ["**/*.integration.test.ts"], { testTimeout: 120_000, hookTimeout: 120_000, fileParallelism: false }),
      project("conformance", ["**/*.conformance.test.ts"], { testTimeout: 300_000, hookTimeout: 120_000, fileParallelism: false }),
      project("faults", ["**/*.faults.test.ts"], { testTimeout: 300_000, hookTimeout: 120_000, fileParallelism: false }),
      project("history", ["**/*.history.test.ts"], { testTimeout: 3_600_000, hookTimeout: 120_000, fileParallelism: false }),
      project("fuzz", ["**/*.fuzz.test.ts"], { testTimeout: 600_000, hookTimeout: 120_000, fileParallelism: false }),
      project("e2e", ["**/*.e2e.test.ts"], { testTimeout: 1_800_000, hookTimeout: 1_800_000, fileParallelism: false }),
    ],
  },
});
