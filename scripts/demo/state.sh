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

# Two ups of the same state at once would fight over the cluster; the second one is told so.
lock_state() {
  mkdir -p "$(state_dir)"
  exec 9>"$(state_dir)/lock"
  if command -v flock >/dev/null && ! flock -n 9; then
    not_fit "another ./demo is working on this stack (lock $(state_dir)/lock)" "wait for it to end, or end it, then run the same command again"
  fi
}
