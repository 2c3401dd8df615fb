# shellcheck shell=bash
# The commands: up, plan, status, tool, export, remove.
PHASES=(packages docker downloads tools roots images node-image manifests plugins)

lab_up() {
  check_machine
  take_lock
  ensure_packages
  ensure_docker
  remove_node_leftovers
  local roots name line set roots_pid=
  # Root file systems wait for the network a lot: they are made beside the builds.
  mapfile -t roots < <(missing_roots)
  if [ ${#roots[@]} -gt 0 ]; then ensure_roots "${roots[@]}" & roots_pid=$!; fi

  phase downloads "Node.js, Envoy, kind's files, Knative's manifests"
  ensure_genuine
  for name in $(download_names); do ensure_download "$name"; done
  phase tools "$(tools_summary)"
  for name in "${TOOLS[@]}"; do ensure_tool "$name"; done
  phase roots "${roots[*]:-all there}"
  [ -z "$roots_pid" ] || wait "$roots_pid"

  read_images
  mapfile -t stale < <(stale_images)
  phase images "$([ ${#stale[@]} -gt 0 ] && echo "${#stale[@]} to build" || echo "all there")"
  for line in "${stale[@]}"; do ensure_image "$line"; done
  phase node-image "$NODE_TAG"
  if [ "${HAVE[$NODE_TAG]:-}" != "${IMAGE_ID[$NODE_TAG]}" ]; then ensure_node_image; fi
  remove_replaced_images
  phase manifests "$LAB_HOME/manifests"
  run manifests manifests write_manifests
  set=$(plugins_in_use)
  phase plugins "$set"
  ensure_set "$set"
  # Module and build caches are worth gigabytes and of no further use; a changed recipe fetches anew.
  rm -rf "$LAB_HOME/go"
  link_home
  say "==> [$(clock $SECONDS)] lab is up with $set plugins. next: eval \"\$(lab/lab env)\""
}

check_machine() {
  [ "$(uname -s)/$(uname -m)" = Linux/x86_64 ] || die unfit "the lab needs Linux on x86_64, this is $(uname -s) on $(uname -m)" "use Docker, Pulumi and kind of your own: DIALOUT_MODE=public ./demo up"
  local program
  for program in node npm python3 flock sha256sum; do command -v "$program" >/dev/null || die unfit "$program is not on PATH" "install it and run lab/lab up again"; done
}

tools_summary() {
  local tool way; declare -A n=([here]=0 [unpack]=0 [build]=0)
  for tool in "${TOOLS[@]}"; do way=$(tool_way "$tool"); n[${way%% *}]=$((n[${way%% *}] + 1)); done
  echo "${n[here]} there, ${n[unpack]} to unpack, ${n[build]} to build"
}

# `.lab` in the repository names LAB_HOME, so that settings files can name what is in it by a path relative to the project.
link_home() {
  [ "$(readlink "$REPO/.lab" 2>/dev/null)" = "$LAB_HOME" ] && return
  [ ! -e "$REPO/.lab" ] || [ -L "$REPO/.lab" ] || die failed "$REPO/.lab is in the way" "move it elsewhere"
  ln -sfn "$LAB_HOME" "$REPO/.lab"
}

lab_plan() {
  local missing name set seconds=0 way
  echo "LAB_HOME $LAB_HOME, LAB_CACHE ${LAB_CACHE:-(none)}"
  mapfile -t missing < <(command -v dpkg-query >/dev/null && missing_packages || printf '%s\n' "${HOST_PACKAGES[@]}")
  echo "Debian packages to install: ${missing[*]:-none}"
  if docker_answers; then echo "Docker: the engine that is running is used"; else echo "Docker: started by the lab$(has_sys_resource || echo ', behind a runtime shim (CAP_SYS_RESOURCE is missing)')"; fi
  for name in $(download_names); do [ -d "$(download_dir "$name")" ] || echo "download: $name"; done
  for name in "${TOOLS[@]}"; do
    way=$(tool_way "$name")
    case $way in
      build) seconds=$((seconds + ${BUILD_SECONDS[$name]})); echo "tool $name: from source, about ${BUILD_SECONDS[$name]} s on 2 cores" ;;
      unpack*) echo "tool $name: $way" ;;
    esac
  done
  for name in $(missing_roots); do way=$(root_way "$name"); echo "root file system $name (${ROOTS[$name]%% *}): ${way/build/from Debian packages, about 45 s}"; done
  if docker_answers; then
    read_images
    while read -r name; do echo "image ${name%% *}"; done < <(stale_images)
    if [ "${HAVE[$NODE_TAG]:-}" != "${IMAGE_ID[$NODE_TAG]}" ]; then echo "image $NODE_TAG"; fi
  else while read -r name; do echo "image ${name%% *}"; done < <(wanted_images; node_image); fi
  set=$(plugins_in_use)
  echo "plugins: $set$(set_is_ready "$set" && echo ", there" || echo ", to install into $(set_dir "$set")")"
  [ "$seconds" = 0 ] || echo "builds take about $((seconds / 60 + 1)) min in all"
}

lab_status() {
  local set name
  echo "LAB_HOME   $LAB_HOME$([ -f "$LAB_HOME/.dialout-lab" ] && echo " ($(du -sh "$LAB_HOME" | cut -f1))" || echo ' (not there)')"
  echo "LAB_CACHE  ${LAB_CACHE:-(none)}"
  if docker_answers; then echo "Docker     $(docker_facts)$(lab_dockerd >/dev/null && echo ', started by the lab')"; else echo "Docker     does not answer"; fi
  for name in "${TOOLS[@]}"; do printf 'tool       %-18s %s\n' "$name" "$(tool_way "$name")"; done
  for name in "${ROOT_NAMES[@]}"; do printf 'root       %-18s %s\n' "$name" "$(root_way "$name")"; done
  if docker_answers; then
    read_images
    while read -r name; do image_state "${name%% *}"; done < <(wanted_images)
    image_state "$NODE_TAG"
  fi
  for set in genuine standin; do printf 'plugins    %-18s %s\n' $set "$(set_is_ready $set && echo installed || echo 'not installed')"; done
  echo "in use     $(plugins_in_use)"
}

image_state() { # tag
  local state=outdated
  case ${HAVE[$1]:-} in "") state=missing ;; "${IMAGE_ID[$1]}") state=current ;; esac
  printf 'image      %-40s %s\n' "$1" $state
}

lab_tool() {
  [ -n "${PACKAGES[$1]:-}" ] || bad_usage "unknown tool '$1' (known: $(printf '%s\n' "${!PACKAGES[@]}" | sort | paste -sd' '))"
  check_machine
  if [ "$(tool_way "$1")" != here ]; then take_lock; fi
  ensure_tool "$1"
  tool_dir "$1"
}

# Archives that another machine's LAB_CACHE understands. Each appears complete or not at all; those that are there already are kept. Takes minutes
# and only reads what no run changes, so it does not hold the lock.
lab_export() {
  local to name; to=$(readlink -m "$1"); mkdir -p "$to" || die failed "$to cannot be made" "name another folder"
  [ -d "$LAB_HOME/logs" ] || die unfit "$LAB_HOME has nothing to export" "lab/lab up"
  heed_signals
  for name in "${!PACKAGES[@]}"; do
    if [ -d "$(tool_dir "$name")" ]; then export_file "$to/$name-$(tool_id "$name").tar.xz" tar -C "$(tool_dir "$name")" -c .; fi
  done
  for name in kind-files knative-manifests; do
    if [ -d "$(download_dir "$name")" ]; then export_file "$to/${DOWNLOADS[$name]}.tar.xz" tar -C "$(download_dir "$name")" -c .; fi
  done
  for name in "$NODE_FILE" "$ENVOY_FILE"; do
    if [ -f "$LAB_HOME/cache/$name" ] && [ ! -f "$to/$name" ]; then cp "$LAB_HOME/cache/$name" "$to/$name.part"; mv "$to/$name.part" "$to/$name"; fi
  done
  for name in "${ROOT_NAMES[@]}"; do
    if [ -f "$(root_file "$name")" ]; then export_file "$to/root-$name-$(root_id "$name").tar.xz" cat "$(root_file "$name")"; fi
  done
  say "lab: $(du -sh "$to" | cut -f1) in $to. Use it: LAB_CACHE=$to lab/lab up"
}
export_file() { # archive, command that writes the tar
  local archive=$1 began=$SECONDS; shift
  [ ! -f "$archive" ] || return 0
  run "${archive##*/}" export pack "$archive" "$@"
  detail "${archive##*/}: $((SECONDS - began)) s"
}
pack() { local archive=$1; shift; "$@" | xz -T0 -3 > "$archive.part"; mv "$archive.part" "$archive"; }

lab_remove() {
  local tags users
  [ -f "$LAB_HOME/.dialout-lab" ] || die failed "$LAB_HOME was not made by the lab" "set LAB_HOME to the one to remove"
  take_lock
  if docker_answers; then
    mapfile -t tags < <({ printf '%s\n' "${IMAGES[@]}" "${KOURIER_IMAGES[@]}"; node_image; } | cut -d' ' -f1)
    users=$(for tag in "${tags[@]}"; do docker ps -a --filter "ancestor=$tag" --format '{{.Names}}'; done | sort -u | paste -sd' ')
    [ -z "$users" ] || die failed "containers still use the lab's images: $users" "./demo down, then lab/lab remove"
    remove_node_leftovers
    for tag in "${tags[@]}"; do docker rmi "$tag" >/dev/null 2>&1 || true; done
    remove_replaced_images
    if lab_dockerd >/dev/null; then stop_dockerd "${1:-}"; fi
  fi
  [ "$(readlink "$REPO/.lab" 2>/dev/null)" != "$LAB_HOME" ] || rm "$REPO/.lab"
  rm -rf --one-file-system "${LAB_HOME:?}"
  say "lab: removed $LAB_HOME and the lab's images. Debian packages stay: ${HOST_PACKAGES[*]}"
}
