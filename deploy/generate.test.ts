import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { loadAll } from "js-yaml";
import { expect, it } from "vitest";
import { files } from "./generate";

const dir = path.join(__dirname, "manifests");
const onDisk = (d: string): string[] => readdirSync(d).flatMap((f) => (statSync(path.join(d, f)).isDirectory() ? onDisk(path.join(d, f)) : [path.relative(dir, path.join(d, f))]));

it("deploy/manifests is what the builders make (npm run manifests)", () => {
  const made = files();
  expect(onDisk(dir).filter((f) => f.endsWith(".yaml")).sort()).toEqual(Object.keys(made).sort());
  for (const [file, text] of Object.entries(made)) expect(readFileSync(path.join(dir, file), "utf8"), file).toBe(text);
});

it("every file is YAML, and no secret in it is usable as it is", () => {
  for (const [file, text] of Object.entries(files())) expect(loadAll(text).length, file).toBeGreaterThan(0);
  expect(files()["secrets.example.yaml"]).toMatch(/SH_RELAY_TOKEN: 'CHANGE-ME/);
});
