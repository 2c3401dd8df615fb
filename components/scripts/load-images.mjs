// Copies images of the local Docker engine into a kind node, all in one stream, and only those it lacks.
// `docker save | ctr import` instead of `kind load`: the latter asks for all platforms, which an engine with the containerd image
// store cannot give (kubernetes-sigs/kind#3795), and copies through a file.
// Variables: NODE (container), IMAGES (JSON list of image references).
import { spawn } from "node:child_process";
import { docker, run, runScript, Unfit, variable } from "./lib.mjs";
import { missing } from "./load-rules.mjs";

async function identify(names) {
  const found = await run("docker", ["image", "inspect", "--format", "{{.Id}}", ...names]);
  if (found.code === 0) return found.stdout.trim().split("\n").map((id, i) => ({ name: names[i], id }));
  const absent = /No such image: (\S+)/.exec(found.stderr)?.[1];
  throw new Unfit(absent ? `image ${absent} is not in the local Docker engine, so it cannot be copied into the cluster. See: docker image ls` : `docker image inspect failed: ${found.stderr.trim().split("\n").slice(-1)[0]}`);
}

function copy(node, names) {
  return new Promise((resolve, reject) => {
    const save = spawn("docker", ["save", ...names], { stdio: ["ignore", "pipe", "pipe"] });
    const load = spawn("docker", ["exec", "-i", node, "ctr", "--namespace=k8s.io", "images", "import", "--digests", "-"], { stdio: [save.stdout, "ignore", "pipe"] });
    let said = "", open = 2, bad = false;
    for (const child of [save, load]) {
      child.stderr.setEncoding("utf8").on("data", (d) => { said = (said + d).slice(-4000); });
      child.on("error", reject);
      child.on("close", (code) => {
        bad ||= code !== 0;
        if (--open > 0) return;
        if (!bad) resolve(undefined);
        else reject(new Unfit(`images could not be copied into ${node}: ${said.trim().split("\n").slice(-1)[0]}. Is the node running, and is there disk space? docker ps; docker system df`));
      });
    }
    save.stdout.destroy(); // the reader is the other process
  });
}

await runScript(async () => {
  const node = variable("NODE"), names = JSON.parse(variable("IMAGES"));
  const wanted = await identify(names);
  const present = JSON.parse(await docker("exec", node, "crictl", "images", "-o", "json"));
  const todo = missing(wanted, present);
  if (todo.length) await copy(node, todo);
  process.stdout.write(`${todo.length} of ${wanted.length} images copied`);
});
