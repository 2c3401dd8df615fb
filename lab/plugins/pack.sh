#!/bin/sh
# Usage: lab/plugins/pack.sh OUTDIR
# Writes the stand-ins as single executables of the genuine files' names (they need `node` on the PATH):
#   pulumi-resource-docker, pulumi-resource-command    pulumi plugin install resource NAME VERSION --file OUTDIR/pulumi-resource-NAME
#   pulumi-language-nodejs, pulumi-resource-pulumi-nodejs    OUTDIR on the PATH
set -eu
out=${1:?usage: lab/plugins/pack.sh OUTDIR}
lab=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
node "$lab/../scripts/build.mjs" plugin-docker plugin-command langhost
mkdir -p "$out"
# by rename, so that a plugin which runs at this moment keeps its file
put() { install -m 0755 "$1" "$out/.$2.$$" && mv "$out/.$2.$$" "$out/$2"; }
put "$lab/plugins/dist/pulumi-resource-docker.cjs" pulumi-resource-docker
put "$lab/plugins/dist/pulumi-resource-command.cjs" pulumi-resource-command
put "$lab/langhost/dist/pulumi-language-nodejs.cjs" pulumi-language-nodejs
put "$lab/langhost/pulumi-resource-pulumi-nodejs" pulumi-resource-pulumi-nodejs
