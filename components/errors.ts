import * as pulumi from "@pulumi/pulumi";

/**
 * Something the user has to change. Pulumi prints a RunError without a stack trace; `./demo` turns the tag into its exit code:
 * `setting` 3, `environment` 2.
 */
export function refuse(kind: "setting" | "environment", message: string): pulumi.RunError {
  return new pulumi.RunError(`dialout[${kind}]: ${message}`);
}
