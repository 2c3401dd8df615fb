# shellcheck shell=bash
# Where Pulumi keeps state. A backend or login of the user's is used as it is; otherwise a private folder with a passphrase
# that is made once and readable by its owner only.

state_dir() { printf '%s' "${DIALOUT_STATE_DIR:-${XDG_STATE_HOME:-$HOME/.local/state}/dialout}"; }

user_backend() {
  [ -n "${PULUMI_BACKEND_URL:-}" ] || [ -n "${PULUMI_ACCESS_TOKEN:-}" ] && return 0
  local file=${PULUMI_HOME:-$HOME/.pulumi}/credentials.json
  [ -f "$file" ] && grep -Eq '"current": *"[^"]+"' "$file"
}

# Exports the backend for this process and its children.
use_backend() {
  local dir; dir=$(state_dir)
  if user_backend; then BACKEND_WHY="your own Pulumi backend"
  else
    (umask 077; mkdir -p "$dir/backend")
    chmod 700 "$dir"
    export PULUMI_BACKEND_URL="file://$dir/backend"
    BACKEND_WHY="a private folder ($dir)"
  fi
  if [ -z "${PULUMI_CONFIG_PASSPHRASE+x}" ] && [ -z "${PULUMI_CONFIG_PASSPHRASE_FILE:-}" ] && [ -z "${PULUMI_ACCESS_TOKEN:-}" ]; then
    make_passphrase "$dir"
    export PULUMI_CONFIG_PASSPHRASE_FILE="$dir/passphrase"
  fi
  export PULUMI_SKIP_UPDATE_CHECK=true BACKEND_WHY
}

# Written to a file beside it and renamed: a cut leaves either no passphrase or a whole one.
make_passphrase() {
  local dir=$1 half
  [ -s "$dir/passphrase" ] && return
  (umask 077; mkdir -p "$dir"; half=$(mktemp "$dir/passphrase.XXXXXX"); head -c 24 /dev/urandom | base64 | tr -d '\n' > "$half"; mv -n "$half" "$dir/passphrase"; rm -f "$half")
}

# Two ups of the same state at once would fight over the cluster; the second one is told so. Whatever a run starts inherits the lock,
# so a run that was killed is over only when its last process is: those are ended here, or `kind create` would go on beside a `down`.
lock_state() {
  local file; file="$(state_dir)/lock"
  mkdir -p "$(state_dir)"
  exec 9>>"$file"
  if command -v flock >/dev/null && ! flock -n 9; then
    local owner; owner=$(cat "$file" 2>/dev/null || true)
    if [ -z "$owner" ] || is_demo "$owner"; then
      not_fit "another ./demo (process ${owner:-unknown}) is working on this stack" "wait for it to end, or end it, then run the same command again"
    fi
    say "an earlier ./demo (process $owner) was killed; ending what it left running"
    end_holders "$file" TERM
    flock -w 20 9 || { end_holders "$file" KILL; flock -w 20 9; } || not_fit "processes of a killed ./demo hold $file and do not end" "end them (fuser -v $file), then run the same command again"
  fi
  echo $$ > "$file"
  # What Pulumi itself was doing when it was killed
  if command -v node >/dev/null && [ -d "$(state_dir)/backend" ]; then node scripts/demo/mend-state.mjs "$(state_dir)/backend"; fi
}

is_demo() { [[ $1 =~ ^[0-9]+$ ]] && { tr '\0' ' ' < "/proc/$1/cmdline"; } 2>/dev/null | grep -Eq '(^| |/)demo '; }

end_holders() { # lock file, signal
  local fd pid file; file=$(readlink -f "$1")
  for fd in /proc/[0-9]*/fd/9; do
    [ "$(readlink "$fd" 2>/dev/null)" = "$file" ] || continue
    pid=${fd#/proc/}; pid=${pid%%/*}
    [ "$pid" = $$ ] || kill "-$2" "$pid" 2>/dev/null || true
  done
}
