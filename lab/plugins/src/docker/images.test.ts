import { expect, test } from "vitest";
import { imagePath, repoDigest, splitName } from "./images";

test.each([
  ["redis", "redis", "latest"],
  ["redis:7", "redis", "7"],
  ["host:5000/a/b", "host:5000/a/b", "latest"],
  ["host:5000/a/b:1.2", "host:5000/a/b", "1.2"],
  ["a/b@sha256:abc", "a/b", "sha256:abc"],
])("%s", (name, repository, reference) => {
  expect(splitName(name)).toEqual({ repository, reference });
});

test("the digest of the same repository, in its long or short form", () => {
  const image = { Id: "i", RepoTags: null, RepoDigests: ["other@sha256:1", "redis@sha256:2", "quay.io/x/y@sha256:3"] };
  expect(repoDigest("docker.io/library/redis:7", image)).toBe("redis@sha256:2");
  expect(repoDigest("quay.io/x/y", image)).toBe("quay.io/x/y@sha256:3");
  expect(repoDigest("mine:1", image)).toBe("");
  expect(repoDigest("mine:1", { ...image, RepoDigests: null })).toBe("");
});

test("slashes stay, the rest is escaped", () => {
  expect(imagePath("host:5000/a b/c:1")).toBe("host%3A5000/a%20b/c%3A1");
});
