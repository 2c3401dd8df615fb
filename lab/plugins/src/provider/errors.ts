import type { Props } from "./values";

/** A message for the person who ran Pulumi; never shown with a stack trace. */
export class UserError extends Error {}

/** The resource exists but is not as asked. Pulumi keeps it in its state, so that the next `up` or `destroy` deals with it. */
export class PartlyMade extends UserError {
  constructor(message: string, readonly id: string, readonly outputs: Props) {
    super(message);
  }
}

export class Cancelled extends UserError {}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
