# shellcheck shell=bash
# Each check prints one line: ok, warn or BAD, what was found, and for the latter two how to fix it.

doctor_bad=0
check_ok() { printf '  ok    %-22s %s\n' "$1" "$2" >&2; }
check_warn() { printf '  warn  %-22s %s\n        fix: %s\n' "$1" "$2" "$3" >&2; }
check_bad() { printf '  BAD   %-22s %s\n        fix: %s\n' "$1" "$2" "$3" >&2; doctor_bad=$((doctor_bad + 1)); }

doctor_node() {
  local v
  if ! command -v node >/dev/null; then check_bad node "not found" "install Node.js 20.19 or newer: https://nodejs.org"; return; fi
  v=$(node --version); v=${v#v}
  if version_at_least "$v" 20.19.0; then check_ok node "$v"; else check_bad node "$v is too old" "install Node.js 20.19 or newer"; fi
  if command -v npm >/dev/null; then check_ok npm "$(npm --version)"; else check_bad npm "not found" "it comes with Node.js"; fi
}

doctor_tool() { # name, minimum, command that prints a version, where to get it
  local v
  if ! command -v "$1" >/dev/null; then check_bad "$1" "not found" "$4"; return; fi
  v=$(eval "$3" 2>/dev/null | grep -Eo '[0-9]+\.[0-9]+(\.[0-9]+)?' | head -n1 || true)
  if [ -z "$v" ]; then check_warn "$1" "its version cannot be read" "$4"
  elif version_at_least "$v" "$2"; then check_ok "$1" "$v"
  else check_bad "$1" "$v is older than $2" "$4"; fi
}

doctor_docker() {
  local v
  if v=$(docker info --format '{{.ServerVersion}} ({{.NCPU}} CPUs, {{.MemTotal}} bytes memory)' 2>&1); then check_ok "docker engine" "$v"
  else check_bad "docker engine" "does not answer: $(head -n1 <<<"$v")" "start Docker (Linux: systemctl start docker; check that you may use its socket), or point DOCKER_HOST at it"; fi
}

doctor_resources() {
  local free_mb mem_mb
  free_mb=$(df -Pm . | awk 'NR==2{print $4}')
  if [ "$free_mb" -ge 15000 ]; then check_ok "disk" "$free_mb MB free"
  elif [ "$free_mb" -ge 8000 ]; then check_warn "disk" "$free_mb MB free" "15000 MB are comfortable: docker system df shows what can go"
  else check_bad "disk" "$free_mb MB free, 8000 needed" "free some: docker system df shows what can go"; fi
  if [ -r /proc/meminfo ]; then
    mem_mb=$(awk '/MemAvailable/{print int($2/1024)}' /proc/meminfo)
    if [ "$mem_mb" -ge 4000 ]; then check_ok "memory" "$mem_mb MB available"; else check_bad "memory" "$mem_mb MB available, 4000 needed" "close other programs, or give Docker more memory"; fi
  fi
  if [ -r /proc/sys/fs/inotify/max_user_watches ]; then
    local watches instances; watches=$(cat /proc/sys/fs/inotify/max_user_watches); instances=$(cat /proc/sys/fs/inotify/max_user_instances)
    if [ "$watches" -ge 65536 ] && [ "$instances" -ge 128 ]; then check_ok "inotify" "watches $watches, instances $instances"
    else check_warn "inotify" "watches $watches, instances $instances" "sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512"; fi
  fi
}

doctor_lab() {
  if command -v apt-get >/dev/null; then check_ok debian "apt-get is there"; else check_bad debian "no apt-get" "the lab needs Debian or Ubuntu"; fi
  if [ "$(id -u)" = 0 ]; then check_ok root "yes"; else check_bad root "uid $(id -u)" "run as root: the lab installs packages and starts Docker"; fi
  doctor_tool go 1.25 "go version" "install Go 1.25 or newer"
  doctor_node
  if docker_works; then doctor_docker; else check_ok "docker engine" "not running; the lab installs and starts it"; fi
}

run_doctor() {
  doctor_bad=0
  say "doctor, $MODE way ($MODE_WHY):"
  if [ "$MODE" = lab ]; then doctor_lab
  else
    doctor_node
    doctor_docker
    doctor_tool kind 0.29.0 "kind version" "https://kind.sigs.k8s.io/docs/user/quick-start/#installation"
    doctor_tool pulumi 3.200.0 "pulumi version" "https://www.pulumi.com/docs/install"
    if image_registry_reachable; then check_ok "image registries" "reachable"; else check_bad "image registries" "not reachable" "check network and proxy, or use the lab: DIALOUT_MODE=lab ./demo up"; fi
  fi
  doctor_resources
}

cmd_doctor() {
  [ $# -eq 0 ] || bad_usage "doctor takes no options"
  choose_mode
  run_doctor
  [ "$doctor_bad" = 0 ] || { say "$doctor_bad thing(s) to fix, then: ./demo doctor"; exit $EXIT_ENV; }
  say "fit. next: ./demo up"
}
