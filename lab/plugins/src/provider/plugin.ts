// What a plugin is, apart from the protocol.
import type { Change } from "./diff";
import type { Failure } from "./schema";
import type { Props } from "./values";

export interface Call {
  urn: string;
  /** The resource's name in the program. */
  name: string;
  /** Aborted when the user cancels or the resource's custom timeout is over; the reason is a UserError. */
  signal: AbortSignal;
  /** One line beside the resource in the CLI's progress display; gone from the final output. */
  status(line: string): void;
}

/** One resource type. All of it but create, read, update and delete is free of side effects. */
export interface Resource {
  check(olds: Props, news: Props, name: string, seed: Uint8Array): { inputs: Props; failures: Failure[] };
  diff(olds: Props, news: Props): { changes: Change[]; deleteFirst: boolean };
  /** Outputs to show in a preview; `olds` when the resource exists. */
  plan(inputs: Props, olds?: Props): Props;
  create(inputs: Props, call: Call): Promise<{ id: string; outputs: Props }>;
  /** Undefined when it is gone. */
  read(id: string, state: Props, inputs: Props, call: Call): Promise<{ id: string; outputs: Props } | undefined>;
  update(id: string, olds: Props, news: Props, call: Call): Promise<Props>;
  delete(id: string, state: Props, call: Call): Promise<void>;
}

export interface Plugin {
  name: string;
  version: string;
  /** Whether secret inputs arrive marked. Otherwise Pulumi itself marks the outputs of the same names. */
  acceptSecrets: boolean;
  resources: Record<string, Resource>;
  /** Provider settings served; others are refused. */
  settings: readonly string[];
  configure(settings: Props): void;
}
