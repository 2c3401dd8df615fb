import { ToolError, type ToolContext } from "./context";
import { quote } from "./shell";
import { tail, TailBuffer } from "./text";

/** The command as it runs in the sandbox. */
export const bashCommand = (cwd: string, command: string) => `cd ${quote(cwd)} && ${command}`;

/** Both output streams as they came, the last part of them; an exit status other than 0 is an error that carries the output. */
export async function bash(ctx: ToolContext, input: { command: string; timeout?: number }): Promise<string> {
  const output = new TailBuffer();
  const collect = (chunk: Buffer) => output.push(chunk);
  const told = () => tail(output.text().replace(/\n$/, ""));
  let result;
  try {
    result = await ctx.exec(bashCommand(ctx.cwd, input.command), { onData: collect, timeout: input.timeout });
  } catch (e) {
    if ((e as { code?: string }).code !== "timeout") throw e;
    throw new ToolError([told(), `Command timed out (${(e as Error).message}) and was killed`].filter(Boolean).join("\n\n"));
  }
  const text = told();
  if (result.exitCode === 0) return text || "(no output)";
  const how = result.truncated ? "Command wrote more than the sandbox delivers and was cut off" : result.exitCode === null ? "Command was killed by a signal" : `Command exited with code ${result.exitCode}`;
  throw new ToolError([text, how].filter(Boolean).join("\n\n"));
}
