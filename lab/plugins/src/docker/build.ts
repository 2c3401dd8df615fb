// Image builds with the daemon's BuildKit, which needs neither buildx nor a session for a context that comes as an archive.
import type { Call } from "../provider/plugin";
import { UserError, messageOf } from "../provider/errors";
import type { Props } from "../provider/values";
import { readProgress } from "./build-log";
import { contextArchive } from "./context";
import type { Engine, Request } from "./engine";

/** Lines of a failed command that go into the error. */
const TAIL_LINES = 20;

/** Query of POST /build. `version: 2` asks for BuildKit. */
export function buildQuery(name: string, build: Props): NonNullable<Request["query"]> {
  const text = (key: string): string | undefined => (build[key] ? String(build[key]) : undefined);
  const flag = (key: string): boolean | undefined => (build[key] === true ? true : undefined);
  const strings = (key: string): string[] => (Array.isArray(build[key]) ? build[key].map(String) : []);
  return {
    version: 2,
    t: [name, ...strings("tags")],
    dockerfile: String(build.dockerfile),
    buildargs: JSON.stringify(build.buildArgs ?? {}),
    // The genuine plugin loses `labels` unless it is told to use the legacy builder. So do we, or only users would find out.
    labels: build.useLegacyBuilder === true ? JSON.stringify(build.labels ?? {}) : undefined,
    target: text("target"),
    platform: text("platform"),
    networkmode: text("networkMode"),
    extrahosts: strings("extraHosts").length ? strings("extraHosts").join(",") : undefined,
    nocache: flag("noCache"),
    pull: flag("pullParent"),
    rm: build.remove !== false,
    forcerm: flag("forceRemove"),
  };
}

export async function buildImage(engine: Engine, name: string, build: Props, call: Call): Promise<void> {
  const output: string[] = [];
  type Message = { id?: string; aux?: unknown; stream?: string; error?: string; errorDetail?: { message?: string } };
  try {
    const body = contextArchive(String(build.context), String(build.dockerfile));
    for await (const message of engine.lines<Message>("POST", "/build", { query: buildQuery(name, build), body, signal: call.signal })) {
      if (message.id === "moby.buildkit.trace") {
        const progress = readProgress(String(message.aux));
        progress.steps.forEach((step) => call.status(step));
        if (progress.output) output.push(progress.output);
      } else if (message.stream?.trim()) call.status(message.stream.trim());
      if (message.error) throw new UserError(message.errorDetail?.message ?? message.error);
    }
  } catch (error) {
    if (call.signal.aborted) throw error;
    const tail = output.join("").trimEnd().split("\n").slice(-TAIL_LINES).join("\n");
    throw new UserError(`Error building image ${name}: ${messageOf(error)}${tail ? `\nThe build's last output:\n${tail}` : ""}`);
  }
}
