// For tests only: tools on a scratch folder, through the local transport.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { ExecOptions } from "@dialout/transports/types";
import { LocalTransport } from "../sandbox/local";
import type { ToolContext } from "./context";

export interface Scratch extends ToolContext {
  /** Every command that ran. */
  commands: string[];
  path(name: string): string;
  remove(): Promise<void>;
}

/** `prefix` goes in front of every command: a way to hide or replace programs. */
export function scratch(prefix = ""): Scratch {
  const cwd = mkdtempSync(path.join(tmpdir(), "harness-tools-"));
  const transport = new LocalTransport(cwd);
  const commands: string[] = [];
  return {
    cwd,
    harnessCwd: "/app",
    place: "pod",
    commands,
    exec: (command: string, options?: ExecOptions) => {
      commands.push(command);
      return transport.exec(prefix + command, options);
    },
    path: (name) => path.join(cwd, name),
    remove: async () => {
      await transport.close();
      rmSync(cwd, { recursive: true, force: true });
    },
  };
}
