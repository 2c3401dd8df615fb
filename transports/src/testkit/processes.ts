import { readdirSync, readFileSync } from "node:fs";

/** Living processes of this machine, in whatever pid namespace, whose command line holds `text`. For tests only. */
export function processesNaming(text: string): string[] {
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const cmdline = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      return cmdline.includes(text) ? [`${pid} ${cmdline.slice(0, 120)}`] : [];
    } catch {
      return []; // it ended while we looked
    }
  });
}
