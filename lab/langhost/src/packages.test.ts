import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { moduleFolders, pluginOf, programDependencies, requiredPlugins } from "./packages";

const root = mkdtempSync(path.join(tmpdir(), "packages-test-"));
afterAll(() => rmSync(root, { recursive: true }));
const put = (file: string, content: object | string): void => {
  const full = path.join(root, file);
  mkdirSync(path.dirname(full), { recursive: true });
  writeFileSync(full, typeof content === "string" ? content : JSON.stringify(content));
};

put("node_modules/@pulumi/docker/package.json", { name: "@pulumi/docker", version: "5.2.0", pulumi: { resource: true, name: "docker" } });
put("node_modules/@pulumi/command/package.json", { name: "@pulumi/command", version: "9.0.0", pulumi: { resource: true } });
put("node_modules/@pulumi/pulumi/package.json", { name: "@pulumi/pulumi", version: "3.0.0" });
put("node_modules/broken/package.json", "{");
put("node_modules/.bin/tool", "");
put("program/node_modules/@pulumi/command/package.json", { name: "@pulumi/command", version: "1.2.1", pulumi: { resource: true, version: "v1.2.0", server: "http://here" } });
put("program/package.json", { dependencies: { "@pulumi/command": "^1", absent: "1" }, devDependencies: { "@pulumi/docker": "5" } });

test("plugins of all installed packages, the nearest version of each", () => {
  expect(requiredPlugins(path.join(root, "program"))).toEqual([
    { name: "command", version: "v1.2.0", server: "http://here" },
    { name: "docker", version: "v5.2.0", server: "" },
  ]);
});

test("a plugin's name comes from its package when it has none of its own", () => {
  expect(pluginOf({ name: "@pulumi/x", version: "1.0.0", pulumi: { resource: true } })?.name).toBe("x");
  expect(pluginOf({ name: "@other/x", version: "1.0.0", pulumi: { resource: true } })?.name).toBe("other/x");
  expect(pluginOf({ name: "x", version: "1.0.0", pulumi: {} })).toBeUndefined();
});

test("direct dependencies with the installed versions", () => {
  expect(programDependencies(path.join(root, "program"))).toEqual([{ name: "@pulumi/command", version: "1.2.1" }, { name: "@pulumi/docker", version: "5.2.0" }]);
});

test("folders are looked through from the nearest up", () => {
  expect(moduleFolders(path.join(root, "program")).slice(0, 2)).toEqual([path.join(root, "program/node_modules"), path.join(root, "node_modules")]);
});
