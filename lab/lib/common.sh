# shellcheck shell=bash
# Settings, messages, progress and the lock. Progress goes to stderr: stdout belongs to commands whose output is read by programs.

# die failed|unfit|usage MESSAGE [FIX...]: exit codes 1, 2, 3
die() {
  local code=1; case $1 in unfit) code=2 ;; usage) code=3 ;; esac
  printf 'lab: error: %s\n' "$2" >&2; shift 2
  local fix; for fix in "$@"; do printf '  fix: %s\n' "$fix" >&2; done
  exit "$code"
}
say() { printf '%s\n' "$*" >&2; }
detail() { say "      $*"; }
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

read_settings() {
  LAB_HOME=${LAB_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/dialout-lab}
  [[ $LAB_HOME = /* ]] || die usage "LAB_HOME='$LAB_HOME' must be an absolute path"
  [[ $LAB_HOME != *[[:space:]:\'\"]* ]] || die usage "LAB_HOME='$LAB_HOME' must not contain blanks, quotes or colons"
  if [ -z "${LAB_CACHE+set}" ]; then
    LAB_CACHE=$REPO/../shared/lab-cache
    [ -d "$LAB_CACHE" ] && LAB_CACHE=$(readlink -f "$LAB_CACHE") || LAB_CACHE=
  fi
  LAB_PLUGINS=${LAB_PLUGINS:-auto}
  export LAB_HOME LAB_CACHE LAB_PLUGINS
}

check_plugins_setting() {
  [[ $LAB_PLUGINS =~ ^(auto|genuine|standin)$ ]] || die usage "LAB_PLUGINS='$LAB_PLUGINS' must be auto, genuine or standin"
}

# Prints the first cache folder's file of this name, if there is one. Order: what this machine made, then LAB_CACHE.
cached_file() {
  local dir dirs
  IFS=: read -ra dirs <<<"$LAB_HOME/cache:$LAB_CACHE"
  for dir in "${dirs[@]}"; do
    if [ -n "$dir" ] && [ -f "$dir/$1" ]; then printf '%s\n' "$dir/$1"; return; fi
  done
}

hash_of_stdin() { local hash; read -r hash _ < <(sha256sum); printf '%s\n' "${hash:0:16}"; }

# point_to LINK TARGET: a link that changes in one step, and only when it has to.
point_to() {
  [ "$(readlink "$1" 2>/dev/null)" != "$2" ] || return 0
  ln -sfn "$2" "$1.new"; mv -T "$1.new" "$1"
}

# A place for half-made things on the same file system as the result, so that the last step is a rename. `up` empties LAB_HOME/tmp first.
scratch() { mktemp -d "$LAB_HOME/tmp/${1:-work}.XXXXXX"; }

# --- phases ---------------------------------------------------------------------------------------------------------------------
phase_number=0
# phase NAME WHAT: one line when a phase of PHASES begins, with the time since the start and the name of the next one.
phase() {
  local next; phase_number=$((phase_number + 1)); next=${PHASES[$phase_number]:-}
  say "==> [$(clock $SECONDS)] lab $phase_number/${#PHASES[@]} $1: $2${next:+ (next: $next)}"
}

# run LABEL LOG FUNCTION ARGS...: runs a function of the lab as a process of its own (its own `set -e`), output in logs/LOG.log, and says
# every 25 s how long it has been at it and the last line of the log, which for Go builds is the package. Prints the end of the log on failure.
run() {
  local label=$1 log=$LAB_HOME/logs/$2.log began=$SECONDS beat=$SECONDS pid code=0; shift 2
  "$LAB/lab" --step "$@" >"$log" 2>&1 </dev/null & pid=$!
  while kill -0 $pid 2>/dev/null; do
    if ((SECONDS - beat >= 25)); then beat=$SECONDS; detail "$label: at it for $(clock $((SECONDS - began))): $(last_words "$log")"; fi
    sleep 0.1
  done
  wait $pid || code=$?
  [ $code = 0 ] && return
  say "lab: error: $label failed after $(clock $((SECONDS - began))). The end of $log:"
  tail -n 20 "$log" | sed 's/^/  | /' >&2
  say "  fix: see above; nothing half-made is kept, the same command continues from here"
  return $code
}
last_words() { tail -c 400 "$1" | tr '\r' '\n' | tail -n 1 | cut -c1-110; }

# retry TIMES COMMAND...: for downloads; a registry that hiccups must not cost a whole bring-up.
retry() {
  local times=$1 i; shift
  for ((i = 1; ; i++)); do
    "$@" && return
    ((i < times)) || return 1
    echo "attempt $i of $times failed: $*"; sleep $((i * 5))
  done
}

# --- the lock -------------------------------------------------------------------------------------------------------------------
# One changing command at a time. Children inherit the lock: when a run was killed, what it left running is ended by the next one.
take_lock() {
  mkdir -p "$LAB_HOME"/{bin,cache,docker,downloads,logs,manifests,roots,sets,tmp}
  touch "$LAB_HOME/.dialout-lab"
  wait_for_lock
  printf '%s\n' $$ > "$LAB_HOME/lock"
  heed_signals
  rm -rf --one-file-system "${LAB_HOME:?}/tmp"; mkdir "$LAB_HOME/tmp"
}

# The owner is who wrote its pid into the file and still has it open. Five seconds are for one that has the lock but has not written yet. A
# waiting run has the file open only while it tries, so that it is not taken for a remainder of a killed one.
wait_for_lock() {
  local owner told='' since=$SECONDS
  while exec {LOCK_FD}<>"$LAB_HOME/lock"; ! flock -n "$LOCK_FD"; do
    exec {LOCK_FD}>&-
    owner=$(head -n1 "$LAB_HOME/lock")
    if [[ $owner =~ ^[0-9]+$ ]] && has_lock_open "$owner"; then
      since=$SECONDS
      if [ "$told" != "$owner" ]; then say "lab: process $owner is working on $LAB_HOME; waiting for it"; told=$owner; fi
    elif ((SECONDS - since >= 5)); then
      say "lab: an earlier run was killed; ending what it left running"
      for owner in /proc/[0-9]*; do if has_lock_open "${owner#/proc/}"; then kill -KILL "${owner#/proc/}" 2>/dev/null || true; fi; done
      since=$SECONDS
    fi
    sleep 0.3
  done
}
has_lock_open() {
  local fd
  for fd in /proc/"$1"/fd/*; do if [ "$fd" -ef "$LAB_HOME/lock" ]; then return 0; fi; done
  return 1
}

heed_signals() { trap "on_signal INT" INT; trap "on_signal TERM" TERM; trap "on_signal HUP" HUP; }
on_signal() { trap - INT TERM HUP; say "lab: interrupted (SIG$1); the same command continues where it stopped"; end_children $$; exit 130; }
end_children() {
  local child
  for child in $(< "/proc/$1/task/$1/children"); do end_children "$child"; kill -TERM "$child" || true; done 2>/dev/null
}
