// Which images a kind node still lacks; pure.

/**
 * The name containerd knows an image by: `redis:7` is `docker.io/library/redis:7`, a missing tag is `latest`.
 * @param {string} ref
 */
export function fullName(ref) {
  const [head, ...rest] = ref.split("/");
  const withHost = rest.length && (/[.:]/.test(head) || head === "localhost") ? ref : rest.length ? `docker.io/${ref}` : `docker.io/library/${ref}`;
  const last = withHost.slice(withHost.lastIndexOf("/") + 1);
  return /[:@]/.test(last) ? withHost : `${withHost}:latest`;
}

/**
 * @param {{ name: string, id: string }[]} wanted name as Docker knows it and Docker's image id
 * @param {{ images: { id: string, repoTags?: string[] }[] }} present `crictl images -o json` of the node
 * @returns {string[]} names to load: absent, or present with other content. With Docker's containerd image store ids are not
 *   comparable (a manifest's digest instead of a config's); then an image is loaded again rather than taken on trust.
 */
export function missing(wanted, present) {
  const ids = new Map(present.images.flatMap((i) => (i.repoTags ?? []).map((t) => [t, i.id])));
  return wanted.filter((w) => ids.get(fullName(w.name)) !== w.id).map((w) => w.name);
}
