// One battery for every transport: what a caller may rely on, told only through `exec`, so that it runs the same against a folder, a
// container and a live cluster. For tests: import it from a *.conformance.test.ts.
import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TransportError } from "./errors";
import type { ExecOptions, ExecResult, SandboxTransport } from "./types";

export interface ConformanceOptions {
  /** Commands of the concurrency test; default 12. */
  execsAtOnce?: number;
}

const LONG = process.env.CONFORMANCE_LONG === "1";
/** Longer than a stopped writer could pause by chance. */
const STILL_MS = 1_200;

export const rejection = (p: Promise<unknown>): Promise<TransportError> =>
  p.then((r) => expect.fail(`it resolved: ${JSON.stringify(r).slice(0, 300)}`), (e: unknown) => e as TransportError);

/** Declares the battery. `make` is called once; the transport is closed at the end. */
export function conformance(name: string, make: () => Promise<SandboxTransport>, options: ConformanceOptions = {}): void {
  describe(`conformance: ${name}`, () => {
    let transport: SandboxTransport;
    let dir = "";
    const sh = (command: string, o?: ExecOptions): Promise<ExecResult> => transport.exec(command, { timeout: 120, ...o });
    const text = async (command: string, o?: ExecOptions): Promise<string> => {
      const r = await sh(command, o);
      expect([r.exitCode, r.stderr.toString()], command).toEqual([0, ""]);
      return r.stdout.toString();
    };

    beforeAll(async () => {
      transport = await make();
      dir = (await transport.exec("mktemp -d", { timeout: 60 })).stdout.toString().trim();
      expect(dir).toMatch(/^\/.+/);
    });
    afterAll(async () => {
      if (dir) await transport.exec(`rm -rf '${dir}'`, { timeout: 60 });
      await transport?.close();
    });

    describe("the tools' round trips", () => {
      it("write, read, edit, grep, bash", async () => {
        const content = "one\ntwo 'quoted' $not `run`\nthree ü\n";
        await text(`mkdir -p '${dir}/a b' && base64 -d > '${dir}/a b/f'`, { stdin: Buffer.from(Buffer.from(content).toString("base64")) });
        const read = await text(`test -r '${dir}/a b/f' && cat '${dir}/a b/f'`);
        expect(read).toBe(content);
        await text(`cat > '${dir}/a b/f'`, { stdin: Buffer.from(read.replace("two", "zwei")) });
        expect(await text(`grep -n zwei '${dir}/a b/f'`)).toBe("2:zwei 'quoted' $not `run`\n");
        expect(await sh(`grep -n nowhere '${dir}/a b/f'`)).toMatchObject({ exitCode: 1 });
        expect(await text(`cd '${dir}' && ls -1A`)).toBe("a b\n");
      });

      it("heredoc, pipes, and a command of 64 KiB", async () => {
        expect(await text(`cat <<'EOF' | tr a-z A-Z\nit's $HOME\nEOF`)).toBe("IT'S $HOME\n");
        expect(await text(`: ${"x".repeat(64 * 1024)}; echo done`)).toBe("done\n");
      });
    });

    describe("bytes", () => {
      it("every byte value passes in and out", async () => {
        const all = Buffer.from(Array.from({ length: 1024 }, (_, i) => i % 256));
        expect((await sh("cat", { stdin: all })).stdout.equals(all)).toBe(true);
        expect((await sh("cat >&2", { stdin: all })).stderr.equals(all)).toBe(true);
      });

      it("1 MiB of stdin, twice over", async () => {
        const data = randomBytes(1024 * 1024);
        expect(await text("sha256sum | cut -c1-64", { stdin: data })).toBe(`${createHash("sha256").update(data).digest("hex")}\n`);
        expect((await sh("cat", { stdin: data })).stdout.equals(data)).toBe(true);
      });

      it("no stdin is an empty one, and one that nobody reads does no harm", async () => {
        expect(await text("cat; echo end")).toBe("end\n");
        expect(await text("echo end", { stdin: Buffer.alloc(300_000) })).toBe("end\n");
      });

      it("streams stay apart, and the listener sees what the result holds", async () => {
        const told = { stdout: "", stderr: "" };
        const r = await sh("for i in 1 2 3; do echo o$i; echo e$i >&2; done; exit 7", { onData: (c, s) => void (told[s] += c.toString()) });
        expect(r).toMatchObject({ exitCode: 7, truncated: false, stderrTruncated: false });
        expect(told).toEqual({ stdout: "o1\no2\no3\n", stderr: "e1\ne2\ne3\n" });
        expect([r.stdout.toString(), r.stderr.toString()]).toEqual([told.stdout, told.stderr]);
      });

      it("output arrives while the command runs", async () => {
        const at: number[] = [];
        await sh("for i in 1 2 3 4; do echo $i; sleep 0.4; done", { onData: () => void at.push(Date.now()) });
        expect((at.at(-1) as number) - (at[0] as number)).toBeGreaterThan(700);
      });
    });

    it("exit codes pass unchanged", async () => {
      const some = [0, 1, 2, 7, 126, 127, 128, 129, 130, 137, 143, 255];
      const codes = LONG ? Array.from({ length: 256 }, (_, i) => i) : some;
      const got: (number | null)[] = [];
      for (let i = 0; i < codes.length; i += 4) {
        const four = codes.slice(i, i + 4);
        got.push(...(await Promise.all(four.map(async (n) => (await sh(`exit ${n}`)).exitCode))));
      }
      expect(got).toEqual(codes);
      expect((await sh("no-such-command-anywhere")).exitCode).toBe(127);
    });

    it("commands run at the same time and do not mix", async () => {
      const n = options.execsAtOnce ?? 12;
      const before = Date.now();
      const outs = await Promise.all(Array.from({ length: n }, (_, i) => text(`sleep 0.5; for j in {1..200}; do echo ${i}; done`)));
      outs.forEach((out, i) => expect(out).toBe(`${i}\n`.repeat(200)));
      expect(Date.now() - before).toBeLessThan(n * 500 + 30_000);
    });

    describe("kill means dead", () => {
      /** A command with a backgrounded grandchild and one that left the session, each ticking into a file and telling its pid. */
      const escapees = (id: string) => `
        tick() { echo $BASHPID $(cut -d' ' -f22 /proc/$BASHPID/stat) >> '${dir}/${id}.pids'; while :; do echo x >> '${dir}/${id}.'$1; sleep 0.05; done; }
        export -f tick
        tick grandchild & setsid bash -c 'tick session' & (setsid bash -c 'trap "" TERM HUP; tick double' >/dev/null 2>&1 </dev/null &)
        while ! [ -s '${dir}/${id}.grandchild' ] || ! [ -s '${dir}/${id}.session' ] || ! [ -s '${dir}/${id}.double' ]; do sleep 0.05; done
        echo started; wait`;
      const sizes = (id: string) => text(`cd '${dir}' && cat ${id}.grandchild ${id}.session ${id}.double | wc -c`);
      /** Every process that the file names by pid and start time, which no later process has in common with it. */
      const expectGone = async (file: string) =>
        expect(await text(`while read -r p started; do
          [ "$(cut -d' ' -f22 /proc/$p/stat 2>/dev/null)" = "$started" ] && ! grep -q '^State:.*[ZX]' /proc/$p/status 2>/dev/null && echo alive $p
        done < '${dir}/${file}'; true`)).toBe("");
      const expectDead = async (id: string) => {
        const before = await sizes(id);
        await new Promise((r) => setTimeout(r, STILL_MS));
        expect(await sizes(id)).toBe(before);
        await expectGone(`${id}.pids`);
      };

      it("after an abort in mid-stream", async () => {
        const stop = new AbortController();
        const e = await rejection(sh(escapees("abort"), { signal: stop.signal, onData: (c) => void (c.includes("started") && stop.abort()) }));
        expect(e).toMatchObject({ name: "TransportError", code: "aborted", message: "aborted", kill: { remaining: 0, verified: true } });
        expect(e.kill?.found).toBeGreaterThanOrEqual(4);
        await expectDead("abort");
      });

      it("after a timeout", async () => {
        const before = Date.now();
        const e = await rejection(sh(escapees("timeout"), { timeout: 2 }));
        expect(e).toMatchObject({ code: "timeout", message: "timeout:2", kill: { remaining: 0, verified: true } });
        expect(Date.now() - before).toBeLessThan(10_000);
        await expectDead("timeout");
      });

      it("and a signal that was aborted before the call runs nothing", async () => {
        expect(await rejection(sh(`echo ran > '${dir}/early'`, { signal: AbortSignal.abort() }))).toMatchObject({ code: "aborted" });
        expect((await sh(`test -e '${dir}/early'`)).exitCode).toBe(1);
      });
    });

    describe("caps", () => {
      it("a flood is cut at the cap, has the marker and no exit code", async () => {
        const r = await sh("yes | head -c 1000000", { outputCap: 65536 });
        expect(r).toMatchObject({ truncated: true, exitCode: null, stderrTruncated: false });
        expect(r.stdout.length).toBe(65536 + "\n[output truncated]".length);
        expect(r.stdout.toString()).toMatch(/y\n\n\[output truncated\]$|y\n\[output truncated\]$/);
      });

      it("a command that never stops writing is ended", async () => {
        const r = await sh("yes", { outputCap: 1000 });
        expect(r).toMatchObject({ truncated: true, exitCode: null, kill: { remaining: 0, verified: true } });
        expect(r.kill?.found).toBeGreaterThan(0);
      });

      it("a finite flood runs to its end", async () => {
        await sh(`head -c 3000000 /dev/zero; echo end > '${dir}/flood-end'`, { outputCap: 1000 });
        expect(await text(`cat '${dir}/flood-end'`)).toBe("end\n");
      });

      it("stderr has its own cap, and leaves the exit code alone", async () => {
        const r = await sh("head -c 100000 /dev/zero >&2; echo out; exit 3", { outputCap: 50_000 });
        expect(r).toMatchObject({ truncated: false, stderrTruncated: true, exitCode: 3 });
        expect(r.stderr.length).toBe(50_000 + "\n[output truncated]".length);
        expect(r.stdout.toString()).toBe("out\n");
      });

      it("8 MiB pass by default, one byte more does not", async () => {
        expect(await sh("head -c 8388608 /dev/zero")).toMatchObject({ truncated: false, exitCode: 0 });
        expect(await sh("head -c 8388609 /dev/zero")).toMatchObject({ truncated: true, exitCode: null });
      });
    });

    it(`a quiet command may take its time (${LONG ? "150 s of 300 s" : "3 s of 8 s; 150 s with CONFORMANCE_LONG=1"})`, async () => {
      expect(await text(`sleep ${LONG ? 150 : 3}; echo late`, { timeout: LONG ? 300 : 8 })).toBe("late\n");
    });

    it("timeout 0 is no limit", async () => {
      expect(await text("sleep 1; echo late", { timeout: 0 })).toBe("late\n");
    });
  });
}
