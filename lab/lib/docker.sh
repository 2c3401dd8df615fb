# shellcheck shell=bash
# Docker Engine. One that answers is used as it is and never stopped; otherwise the lab starts its own and remembers that it did.
DOCKER_PID=$LAB_HOME/docker/dockerd.pid

docker_answers() { command -v docker >/dev/null && docker info >/dev/null 2>&1; }

# The pid of the dockerd that this LAB_HOME started, if it lives. Its command line names our pid file, so a reused pid is no match.
lab_dockerd() {
  local pid; pid=$(cat "$DOCKER_PID" 2>/dev/null) || return 1
  tr '\0' ' ' 2>/dev/null < "/proc/$pid/cmdline" | grep -qF -- "--pidfile $DOCKER_PID" && echo "$pid"
}

ensure_docker() {
  if docker_answers; then phase docker "$(docker_facts)"; return; fi
  phase docker "starting the engine"
  [ -z "${DOCKER_HOST:-}" ] || die unfit "DOCKER_HOST=$DOCKER_HOST does not answer" "start that engine, or unset DOCKER_HOST"
  [ "$(id -u)" = 0 ] || die unfit "Docker does not answer and only root can start it" "sudo systemctl start docker, or run the lab as root"
  if has_sys_resource && [ -d /run/systemd/system ] && systemctl start docker 2>/dev/null && docker_answers; then detail "$(docker_facts), started by systemd"; return; fi
  start_dockerd
  detail "$(docker_facts), started by the lab"
}

docker_facts() { docker info --format 'engine {{.ServerVersion}}, runtime {{.DefaultRuntime}}, storage {{.Driver}}, cgroup v{{.CgroupVersion}}'; }

has_sys_resource() {
  local bounding; bounding=$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status)
  (((0x$bounding >> 24) & 1))
}

# Without CAP_SYS_RESOURCE in the bounding set runc cannot start privileged containers (kind nodes are), so ours runs behind a shim that drops
# that capability from the container's spec. The user's daemon.json stays as it is; the engine reads a copy with the runtime added.
start_dockerd() {
  local config=$LAB_HOME/docker/daemon.json ours='{}' theirs=/etc/docker/daemon.json
  if ! has_sys_resource; then
    install -m 0755 "$LAB/docker/runc-without-sys-resource" "$LAB_HOME/docker/"
    ours=$(jq -n --arg path "$LAB_HOME/docker/runc-without-sys-resource" '{runtimes: {"lab-runc": {path: $path}}, "default-runtime": "lab-runc"}')
  fi
  [ -s "$theirs" ] || theirs=/dev/null
  jq -s --argjson ours "$ours" '(.[0] // {}) * $ours' "$theirs" > "$config" || die unfit "$theirs is not valid JSON" "correct it: jq . $theirs"
  # In a session of its own and without our descriptors: it must outlive this run and not hold its pipes or its lock.
  (
    for fd in /proc/self/fd/*; do fd=${fd##*/}; ((fd > 2)) && eval "exec $fd>&-" 2>/dev/null; done
    exec setsid dockerd --config-file "$config" --pidfile "$DOCKER_PID" >"$LAB_HOME/logs/dockerd.log" 2>&1 </dev/null
  ) &
  local pid=$! deadline=$((SECONDS + 60))
  until docker_answers; do
    if ! kill -0 $pid 2>/dev/null || ((SECONDS > deadline)); then
      tail -n 8 "$LAB_HOME/logs/dockerd.log" | sed 's/^/  | /' >&2
      die unfit "dockerd did not start" "see $LAB_HOME/logs/dockerd.log"
    fi
    sleep 0.2
  done
}

stop_dockerd() {
  local pid running; pid=$(lab_dockerd) || { say "lab: no Docker engine of the lab is running"; return; }
  running=$(docker ps --format '{{.Names}}' 2>/dev/null | paste -sd' ')
  [ -z "$running" ] || [ "${1:-}" = --force ] || die failed "containers are running: $running" "./demo down, or stop them, or: lab/lab down --force"
  kill -TERM "$pid"
  while [ -d "/proc/$pid" ]; do sleep 0.1; done
  say "lab: stopped the Docker engine the lab had started"
}
