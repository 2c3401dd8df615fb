#!/usr/bin/env bash
# Runs the test suites and closes with one line `N passed, N failed`. Without names: all of them, each in its short form.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
export DIALOUT_ROOT=$PWD
. scripts/demo/lib.sh
. scripts/demo/mode.sh
. scripts/demo/state.sh
. scripts/demo/doctor.sh
. scripts/demo/leftovers.sh
. scripts/demo/stack.sh

all=(lint unit integration conformance faults history fuzz e2e)
suites=("$@"); [ ${#suites[@]} -gt 0 ] || suites=("${all[@]}")
for s in "${suites[@]}"; do [[ " ${all[*]} " == *" $s "* ]] || bad_usage "unknown test suite '$s' (known: ${all[*]})"; done

results=$(mktemp -d); trap 'rm -rf "$results"' EXIT
passed=0; failed=0; failures=()
count() { # suite, passed, failed
  passed=$((passed + $2)); failed=$((failed + $3))
  [ "$3" = 0 ] || failures+=("$1: $3 failed")
  phase "$1: $2 passed, $3 failed"$'\n'
}

# A suite that found no test, or died before it could count, has failed.
vitest_suite() {
  local json="$results/$1.json" numbers
  npx --no-install vitest run --project "$1" --reporter=default --reporter=json --outputFile.json="$json" >&2 || true
  numbers=$(node -e '
    const { readFileSync } = require("node:fs");
    let r; try { r = JSON.parse(readFileSync(process.argv[1], "utf8")); } catch { console.log("0 1"); process.exit(0); }
    const suites = r.testResults.filter((t) => t.status === "failed" && t.assertionResults.every((a) => a.status !== "failed")).length;
    const failed = r.numFailedTests + suites;
    console.log(r.numPassedTests, r.numPassedTests + failed === 0 ? 1 : failed);
  ' "$json")
  # shellcheck disable=SC2086
  count "$1" $numbers
}

check() { # suite, name, command...
  local suite=$1 name=$2; shift 2
  if "$@" >"$results/out" 2>&1; then count "$suite ($name)" 1 0; else cat "$results/out" >&2; count "$suite ($name)" 0 1; fi
}

ensure_packages() {
  program_ready && return
  phase "npm ci, next: ${suites[0]}"
  npm ci --no-progress >&2
  cp package-lock.json node_modules/.dialout-lock
}

# Integration tests use a real Redis of their own; only the lab's Debian may be changed without asking.
ensure_redis() {
  command -v redis-server >/dev/null && return
  if lab_possible; then
    phase "installing redis-server"
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -yqq -o DPkg::Lock::Timeout=300 install redis-server; } >"$results/apt" 2>&1 || { cat "$results/apt" >&2; return 1; }
  else not_fit "redis-server is not installed; the integration tests start one of their own" "install Redis 7 (Debian: apt-get install redis-server, macOS: brew install redis)"; fi
}

run_suite() {
  case $1 in
    lint)
      check lint "generated code is current" node scripts/proto.mjs --check
      check lint types npx --no-install tsc --noEmit -p .
      check lint eslint npx --no-install eslint . ;;
    unit) vitest_suite unit ;;
    e2e) e2e_suite ;;
    *) ensure_redis; vitest_suite "$1" ;;
  esac
}

# Once for each set of plugins that can be had here: the genuine ones, and the lab's stand-ins.
e2e_suite() {
  choose_mode
  local sets=(genuine) set file numbers existing=--existing # once is enough
  if [ "$MODE" = lab ]; then
    sets=(standin)
    if lab/lab has-genuine; then sets=(genuine standin); else phase "e2e: no genuine plugins in any cache folder; only the stand-ins run"; fi
  fi
  for set in "${sets[@]}"; do
    phase "e2e with $set plugins"
    file="$results/e2e-$set.json"
    LAB_PLUGINS=$set node scripts/e2e.mjs --plugins "$set" --results "$file" $existing >&2 || true
    existing=
    numbers=$(node -e 'try { const r = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8")); console.log(r.passed, r.passed + r.failed === 0 ? 1 : r.failed); } catch { console.log("0 1"); }' "$file")
    # shellcheck disable=SC2086
    count "e2e ($set plugins)" $numbers
  done
  [[ " ${sets[*]} " != *" genuine standin "* ]] || { phase "e2e: the stand-ins against the genuine plugins"; eval "$(lab/lab env)"; vitest_suite e2e; }
}

ensure_packages
node scripts/build.mjs
for s in "${suites[@]}"; do phase "suite $s"; run_suite "$s"; done
for f in "${failures[@]}"; do say "failed: $f"; done
say "took $(elapsed)"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] || exit $EXIT_CHECK
