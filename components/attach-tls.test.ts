import { createServer, connect, type TLSSocket } from "node:tls";
import { X509Certificate } from "node:crypto";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { attachNames } from "./attach-tls";
// @ts-expect-error -- plain JavaScript: the provider's process loads it as it is
import { makeCertificate } from "./scripts/certificate.mjs";
import { relay } from "./manifests/relay";
import { workload } from "./kube";

const make = makeCertificate as (names: string[]) => Promise<{ ca: string; certificate: string; key: string }>;
const place = { namespace: "ns" };

it("the names: the node, the published host without its port, the Services", () => {
  expect(attachNames({ relayAddress: "relay.example.com:443" }, "c-control-plane", place)).toEqual(["c-control-plane", "relay.example.com", "sandbox-relay-attach.ns.svc", "sandbox-relay-attach.ns", "sandbox-relay.ns.svc", "sandbox-relay.ns"]);
  expect(attachNames({ relayAddress: undefined }, undefined, place)).toHaveLength(4);
});

it("a client that trusts the authority gets through under each name, and under no other; a stranger's authority is refused", async () => {
  const [ours, strange] = [await make(["c-control-plane", "relay.example.com"]), await make(["c-control-plane"])];
  const server = createServer({ key: ours.key, cert: ours.certificate }, (s) => s.on("error", () => undefined).end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const dial = (servername: string, ca: string) => new Promise<string>((resolve) => {
    const socket: TLSSocket = connect({ port, host: "127.0.0.1", servername, ca }, () => {
      socket.end();
      resolve("ok");
    });
    socket.on("error", (e: NodeJS.ErrnoException) => resolve(e.code ?? e.message));
  });
  try {
    expect([await dial("c-control-plane", ours.ca), await dial("relay.example.com", ours.ca)]).toEqual(["ok", "ok"]);
    expect(await dial("elsewhere", ours.ca)).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
    expect(await dial("c-control-plane", strange.ca)).not.toBe("ok");
  } finally {
    server.close();
  }
  expect(new X509Certificate(ours.certificate).ca).toBe(false);
});

it("the relay reads it from the Secret, and without one has no trace of it", () => {
  const pod = (secret?: string) => workload(relay(place, "i", secret).deployment).template.spec as unknown as { containers: { env: { name: string; value?: string }[]; volumeMounts: { name: string; mountPath: string }[] }[]; volumes: { name: string; secret?: { secretName: string } }[] };
  const secure = pod("tls-1");
  const mount = secure.containers[0]!.volumeMounts.find((m) => m.name === "tls")!;
  expect(secure.volumes.find((v) => v.name === "tls")?.secret?.secretName).toBe("tls-1");
  for (const [name, file] of [["SH_RELAY_TLS_CERT_FILE", "tls.crt"], ["SH_RELAY_TLS_KEY_FILE", "tls.key"]]) expect(secure.containers[0]!.env.find((e) => e.name === name)?.value).toBe(`${mount.mountPath}/${file}`);
  expect(JSON.stringify(pod())).not.toMatch(/tls/i);
});
