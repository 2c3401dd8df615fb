#!/bin/bash
# Process 1 of the container. Node does not reap orphans, bash does; signals go on to the worker, whose status becomes ours.
export DIALOUT_ENTRY=1
node --enable-source-maps /opt/dialout/main.cjs &
worker=$!
trap 'kill -TERM "$worker" 2>/dev/null' TERM
trap 'kill -INT "$worker" 2>/dev/null' INT
while :; do
  wait "$worker"
  status=$?
  # A trapped signal ends `wait` early; the worker is then still there.
  kill -0 "$worker" 2>/dev/null || break
done
exit "$status"
