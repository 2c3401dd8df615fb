# shellcheck shell=bash
# What is on the machine before the first `up` and after `down`. Ours is what carries our label, name prefix or cluster; anything
# else that appeared in between is the user's and is only counted.

# One line per thing: kind<TAB>name. Things of the lab itself (its engine, base images) are not the stack's.
inventory() {
  docker ps -a --format '{{.Names}}' 2>/dev/null | sed 's/^/container\t/'
  docker network ls --format '{{.Name}}' 2>/dev/null | sed 's/^/network\t/'
  docker volume ls -q 2>/dev/null | sed 's/^/volume\t/'
  docker images --format '{{.Repository}}:{{.Tag}}' 2>/dev/null | grep '^dev\.local/' | sed 's/^/image\t/' || true
  local f
  for f in "${KUBECONFIG:-$HOME/.kube/config}" "${TMPDIR:-/tmp}"/dialout-*; do [ -e "$f" ] && printf 'file\t%s %s\n' "$f" "$([ -f "$f" ] && cksum < "$f" | cut -d' ' -f1)"; done
  pgrep -af 'kubectl.*port-forward|dialout-port-forward' 2>/dev/null | sed 's/^[0-9]* /process\t/' || true
}

remember_before() {
  local file; file="$(state_dir)/before"
  [ -f "$file" ] || { inventory | sort > "$file.half"; mv "$file.half" "$file"; }
}

# An `up` that was cut can leave things its state never heard of; they carry our label or are images under our prefix.
remove_leftovers() {
  local ids
  ids=$(docker ps -aq --filter "label=dev.dialout.stack=$STACK" 2>/dev/null || true)
  # shellcheck disable=SC2086
  [ -z "$ids" ] || docker rm -fv $ids >/dev/null
  if [ -f components/scripts/kind-cluster.mjs ]; then node components/scripts/kind-cluster.mjs sweep "$STACK" >&2 || true; fi
  ids=$(docker network ls -q --filter "label=dev.dialout.stack=$STACK" 2>/dev/null || true)
  # shellcheck disable=SC2086
  [ -z "$ids" ] || docker network rm $ids >/dev/null
  # Images carry no label of ours (the builder drops it). Without force: one that a container still uses is somebody's.
  local image
  while read -r image; do docker rmi "$image" >/dev/null 2>&1 || true; done < <(our_new_images)
}

# Tags under our prefix that were not there before the first `up`.
our_new_images() {
  [ -f "$(state_dir)/before" ] || return 0
  comm -13 "$(state_dir)/before" <(inventory | sort) | awk -F '\t' '$1 == "image" && $2 ~ /^dev\.local\/dialout-/ { print $2 }'
}

check_nothing_left() {
  local before now new
  before="$(state_dir)/before"
  [ -f "$before" ] || { phase "nothing to compare with: no up was recorded"; return; }
  now=$(mktemp); inventory | sort > "$now"
  new=$(comm -13 "$before" "$now"); rm -f "$now"
  if [ -z "$new" ]; then phase "down: containers, networks, volumes, image tags, kubeconfigs and processes are as before the first up"; return; fi
  say "still there, and not before the first up:"
  say "$new"
  if awk -F '\t' '
      ($1 == "container" || $1 == "network") && $2 ~ /dialout/ { ours = 1 }
      $1 == "image" && $2 ~ /^dev\.local\/dialout-/ { ours = 1 }
      ($1 == "process" && $2 ~ /dialout-live-|dialout-port-forward/) || ($1 == "file" && $2 ~ /\/dialout-/) { ours = 1 }
      END { exit !ours }' <<<"$new"; then
    say "error: something of ours is left (above). Run ./demo down again; if it stays, remove it by name"
    exit $EXIT_CHECK
  fi
  say "(none of these carries our names or labels; they are taken to be yours)"
}

# Our own state folder goes when no stack is left in it; the lock file goes last.
forget_state() {
  local dir; dir=$(state_dir)
  rm -f "$dir/mode" "$dir/plugins" "$dir/before"
  if [ -d "$dir/backend" ] && [ -z "$(find "$dir/backend" -path '*/stacks/*' -name '*.json' ! -path '*/.pulumi/backups/*' 2>/dev/null | head -n1)" ]; then
    rm -rf "$dir/backend" "$dir/passphrase" "$dir/lock"
    rmdir "$dir" 2>/dev/null || true
  fi
}
