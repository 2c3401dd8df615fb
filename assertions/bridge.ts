// A gRPC client wants an address. This gives it one without a port: a socket file that only this user can open, each
// connection of which becomes a stream of ours.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { pipeline, type Duplex } from "node:stream";

export interface Bridge {
  /** gRPC target. */
  readonly address: string;
  close(): Promise<void>;
}

/** Each connection calls `open` anew, so that a connection after a restart of the far side reaches the new one. */
export async function bridge(open: () => Promise<Duplex>): Promise<Bridge> {
  const folder = mkdtempSync(path.join(tmpdir(), "dialout-bridge-"));
  chmodSync(folder, 0o700);
  const file = path.join(folder, "s");
  const live = new Set<net.Socket>();
  const server = net.createServer((near) => {
    live.add(near);
    near.on("close", () => live.delete(near));
    near.on("error", () => {});
    open().then(
      (far) => {
        if (near.destroyed) return void far.destroy();
        // Either end going away ends both; why, the gRPC client finds out by itself.
        pipeline(near, far, () => far.destroy());
        pipeline(far, near, () => near.destroy());
      },
      () => near.destroy(),
    );
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(file, resolve));
  return {
    address: `unix:${file}`,
    close: async () => {
      for (const s of live) s.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
