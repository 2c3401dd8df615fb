#!/usr/bin/env node
// Stand-in for pulumi-resource-command: command:local:Command only.
import { serve } from "../provider/serve";
import { UserError } from "../provider/errors";
import { COMMAND, LocalCommand } from "./command";

serve({ name: "command", version: "1.2.1", acceptSecrets: true, resources: { [COMMAND]: new LocalCommand() }, settings: [], configure: () => undefined }, process.argv.slice(2))
  .catch((error: unknown) => {
    console.error(error instanceof UserError ? error.message : error);
    process.exit(1);
  });
