# shellcheck shell=bash
# The commands that work on the stack.

# Everything `pulumi` needs: tools on PATH, backend, dependencies of the program.
prepare() {
  choose_mode
  if [ "$MODE" = lab ]; then
    lab/lab up 9>&- # the engine it may start outlives this run, and must not hold its lock
    local exports; exports=$(lab/lab env)
    eval "$exports"
  fi
  use_backend
  if ! program_ready; then
    phase "npm ci (packages of the program), next: pulumi"
    npm ci --no-progress >&2 || not_fit "npm ci failed (its message is above)" "check access to the npm registry, then run the same command again"
    cp package-lock.json node_modules/.dialout-lock
  fi
  node scripts/build.mjs
}

# node_modules belongs to the present lock file
program_ready() { [ -f node_modules/.dialout-lock ] && cmp -s node_modules/.dialout-lock package-lock.json; }

stack_file() { printf 'Pulumi.%s.yaml' "$STACK"; }
# A backend that cannot be read is not one without the stack: what is in it would be taken for gone.
stack_exists() {
  local list; list=$(pulumi stack ls --json) || not_fit "Pulumi cannot list the stacks in $BACKEND_WHY (its message is above)" "./demo doctor, then run the same command again"
  grep -Eq "\"name\": *\"([^\"]*/)?$STACK\"" <<<"$list"
}

# The salt ties a settings file to one passphrase; a file left from an earlier stack would refuse the present one.
forget_salt() { [ -f "$(stack_file)" ] && sed -i.bak '/^encryptionsalt:/d' "$(stack_file)" && rm -f "$(stack_file).bak" || true; }

select_stack() {
  if stack_exists; then pulumi stack select "$STACK" >/dev/null; return; fi
  [ "${1:-}" = create ] || return 1
  forget_salt
  pulumi stack init "$STACK" >/dev/null
  (umask 077; mkdir -p "$(state_dir)"); printf '%s' "$MODE" > "$(state_dir)/mode"
  printf '%s' "${LAB_PLUGINS:-genuine}" > "$(state_dir)/plugins"
}

need_stack() { select_stack || not_fit "there is no stack '$STACK' in $BACKEND_WHY" "./demo up"; }

# 0 when the stack's last proof passed, 1 when it failed; prints the table either way.
report() {
  local json
  json=$(pulumi stack output --json 2>/dev/null) || return 1
  node scripts/demo/table.mjs <<<"$json"
}

# The state may know a cluster that somebody has deleted or stopped; Pulumi would then report each object in it as unreachable.
need_cluster() {
  local cluster state
  cluster=$(pulumi stack export --stack "$STACK" 2>/dev/null | node -e '
    const { deployment } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
    const made = (deployment.resources ?? []).find((r) => r.urn.endsWith("::kind-cluster") && r.id);
    if (made) console.log(made.inputs.environment.CLUSTER_NAME);
  ' 2>/dev/null) || return 0
  [ -n "$cluster" ] || return 0
  state=$(docker ps -a --filter "name=^/?$cluster-control-plane$" --format '{{.State}}' 2>/dev/null)
  case $state in
    running) await_api "$cluster-control-plane" ;;
    "") not_fit "the cluster '$cluster' of stack '$STACK' is gone; somebody deleted it" "./demo down (it forgets what was in the cluster, and removes the rest), then ./demo up" ;;
    *) not_fit "the cluster '$cluster' of stack '$STACK' is $state" "docker start $cluster-control-plane, or ./demo down" ;;
  esac
}

# After a reboot the node is there before its API server, and Pulumi takes a cluster that does not answer for one that is gone.
await_api() {
  local end=$((SECONDS + 180)) said=
  until docker exec "$1" kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 5s get --raw /readyz >/dev/null 2>&1; do
    [ -n "$said" ] || { phase "the cluster's node has just started; waiting for its API server (at most 3 minutes)"; said=1; }
    [ "$SECONDS" -lt "$end" ] || not_fit "the API server in container $1 does not answer" "docker logs $1; docker restart $1; or ./demo down"
    sleep 1
  done
}

cmd_up() {
  local a plan= args=()
  for a in "$@"; do if [ "$a" = --plan ]; then plan=1; else args+=("$a"); fi; done
  if [ -n "$plan" ]; then show_plan; return; fi
  lock_state
  choose_mode
  run_doctor
  [ "$doctor_bad" = 0 ] || { say "$doctor_bad thing(s) to fix, then: ./demo up"; exit $EXIT_ENV; }
  prepare
  docker_works || not_fit "Docker does not answer" "./demo doctor"
  select_stack create
  need_cluster
  remember_before
  phase "pulumi up, stack $STACK, state in $BACKEND_WHY, plugins: ${LAB_PLUGINS_IN_USE:-genuine}"
  local code=0
  run_pulumi up --yes --skip-preview "${args[@]}" || code=$?
  phase "results"
  if [ $code = 0 ]; then report || exit $EXIT_CHECK
  else
    report >&2 || true
    say "error: pulumi up did not succeed; the cause is above. State is kept: fix it and run ./demo up again, or ./demo down"
    exit "$code"
  fi
}

# Runs Pulumi; a setting the program refused becomes exit code 3, an unfit machine 2, all else 1.
run_pulumi() {
  local log code=0; log=$(mktemp)
  pulumi "$@" --stack "$STACK" --non-interactive --color "$([ -t 1 ] && echo always || echo never)" 2>&1 | tee "$log" || code=$?
  if [ "$code" != 0 ]; then
    code=$EXIT_CHECK
    grep -q 'dialout\[setting\]' "$log" && code=$EXIT_USAGE
    grep -q 'dialout\[environment\]' "$log" && code=$EXIT_ENV
    grep -Eq '^error: unknown (flag|shorthand flag|command)' "$log" && code=$EXIT_USAGE
  fi
  rm -f "$log"
  return "$code"
}

show_plan() {
  choose_mode
  say "way: $MODE ($MODE_WHY); stack: $STACK; state: $(user_backend && echo "your own Pulumi backend" || state_dir)"
  if [ "$MODE" = lab ]; then lab/lab plan; fi
  cat <<'PLAN'
npm packages of the program (npm ci), if they are not there yet
created by the stack, removed by ./demo down:
  Docker      network and kind cluster `dialout` (one node), images dev.local/dialout-*, container dialout-worker (no published port)
  cluster     Knative Serving 1.15.2 with its ingress, Redis, relay, model endpoint, pool pods, harness (ksvc) and three proof arms,
              Secrets with generated tokens, network policies
  proof       reads both os-release files, runs leaves on each arm, plants and reads a random marker, checks the miswired arm
not touched: your kubeconfig, other clusters, containers, networks, images
PLAN
}

cmd_preview() { prepare; need_stack; need_cluster; run_pulumi preview "$@"; }

cmd_prove() {
  local vignettes=
  case "${1:-}" in "") ;; --vignettes) vignettes=1 ;; *) bad_usage "prove takes only --vignettes" ;; esac
  lock_state; prepare; need_stack; need_cluster
  local run; run=$(pulumi config get proof:run --stack "$STACK" 2>/dev/null || echo 0)
  pulumi config set proof:run $((run + 1)) --stack "$STACK"
  pulumi config set dialout:vignettes "$([ -n "$vignettes" ] && echo true || echo false)" --stack "$STACK"
  local code=0; run_pulumi up --yes --skip-preview || code=$?
  report || exit $EXIT_CHECK
  exit $code
}

cmd_flip() {
  local to=${1:-} apply=${2:-}
  [[ $to =~ ^(pods|remote)$ ]] || bad_usage "flip takes pods or remote"
  [[ $apply =~ ^(--apply)?$ ]] || bad_usage "flip takes only --apply after the transport"
  prepare; need_stack; need_cluster
  pulumi config set dialout:transport "$to" --stack "$STACK"
  if [ -n "$apply" ]; then lock_state; run_pulumi up --yes --skip-preview; else run_pulumi preview --diff; say "to make it so: ./demo up. to take it back: ./demo flip $([ "$to" = pods ] && echo remote || echo pods)"; fi
}

# stdout is the JSON alone.
cmd_outputs() {
  [ $# -eq 0 ] || bad_usage "outputs takes no options"
  choose_mode
  if [ "$MODE" = lab ]; then local exports; exports=$(lab/lab env) || exit $EXIT_ENV; eval "$exports"; fi
  use_backend
  need_stack
  pulumi stack output --json
}

cmd_pulumi() { prepare >&2; select_stack >/dev/null 2>&1 || true; exec pulumi "$@"; }

cmd_down() {
  if [ ! -e "$(state_dir)/mode" ] && ! user_backend && ! docker_works; then
    say "no stack is recorded in $(state_dir), and no Docker engine answers: there is nothing to remove"
    return
  fi
  lock_state; prepare
  if ! select_stack; then
    say "there is no stack '$STACK'; looking for leftovers of an interrupted run"
    remove_leftovers; check_nothing_left; forget_state; return
  fi
  pulumi cancel --yes --stack "$STACK" >/dev/null 2>&1 || true
  phase "pulumi destroy, stack $STACK"
  run_pulumi destroy --yes --skip-preview "$@" || { local code=$?; say "error: destroy did not finish; the cause is above. Run ./demo down again"; exit "$code"; }
  pulumi stack rm "$STACK" --yes --preserve-config >/dev/null
  remove_leftovers
  forget_salt
  check_nothing_left
  forget_state
}
