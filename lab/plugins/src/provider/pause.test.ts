import { expect, test } from "vitest";
import { UserError } from "./errors";
import { pause } from "./pause";

test("a pause ends by itself, or with the reason of an abort", async () => {
  await expect(pause(1, new AbortController().signal)).resolves.toBeUndefined();
  const controller = new AbortController();
  const long = pause(60_000, controller.signal);
  controller.abort(new UserError("cancelled"));
  await expect(long).rejects.toThrow(/^cancelled$/);
});
