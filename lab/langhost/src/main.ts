#!/usr/bin/env node
// Stand-in for pulumi-language-nodejs: runs the program with its own @pulumi/pulumi, as the genuine language host does.
import * as grpc from "@grpc/grpc-js";
import { LanguageRuntimeService } from "@pulumi/pulumi/proto/language_grpc_pb";
import { version } from "@pulumi/pulumi/package.json";
import { Children } from "./children";
import { languageHost } from "./host";

// Pulumi passes flags of the genuine host (-root, -tracing …) before the address of the engine.
const engine = process.argv.slice(2).filter((argument) => !argument.startsWith("-")).at(-1) ?? "";
const children = new Children();
const server = new grpc.Server({ "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 });
server.addService(LanguageRuntimeService, languageHost(engine, version, children));
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) {
    console.error(`pulumi-language-nodejs (lab stand-in): ${error.message}`);
    process.exit(1);
  }
  process.stdout.write(`${port}\n`);
});

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, () => {
    children.endAll();
    server.forceShutdown();
    process.exitCode = 0;
  });
}
