# shellcheck shell=bash
# Debian packages of the machine itself. redis-server is for the integration tests, which start one of their own; its service stays off.
HOST_PACKAGES=(ca-certificates docker.io iptables jq mmdebstrap procps redis-server util-linux xz-utils)
POLICY=/usr/sbin/policy-rc.d

missing_packages() {
  local installed
  # dpkg-query ends with 1 when there is one that it does not know
  installed=$({ dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${HOST_PACKAGES[@]}" 2>/dev/null || true; } | sed -n 's/^installed //p')
  comm -23 <(printf '%s\n' "${HOST_PACKAGES[@]}" | sort) <(sort <<<"$installed") | while read -r package; do
    provided_otherwise "$package" || echo "$package"
  done
}

# Docker CE and the like bring the same commands under other package names.
provided_otherwise() {
  case $1 in
    docker.io) command -v docker >/dev/null && { command -v dockerd >/dev/null || docker info >/dev/null 2>&1; } ;;
    redis-server) command -v redis-server >/dev/null ;;
    *) false ;;
  esac
}

ensure_packages() {
  forget_policy
  local missing; mapfile -t missing < <(missing_packages)
  phase packages "${missing[*]:-all there}"
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || die unfit "packages are missing: ${missing[*]}" "apt-get install ${missing[*]}, or run the lab as root"
  command -v apt-get >/dev/null || die unfit "this machine has no apt-get, and these are missing: ${missing[*]}" "use Debian 12 or newer"
  run "apt-get install" packages install_packages "${missing[@]}"
}

install_packages() {
  local options=(-y -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=5 --no-install-recommends)
  export DEBIAN_FRONTEND=noninteractive
  retry 3 apt-get -q update
  trap forget_policy EXIT
  if [ ! -e "$POLICY" ]; then printf '#!/bin/sh\n# dialout lab: no service starts while packages are installed\nexit 101\n' > "$POLICY"; chmod 0755 "$POLICY"; fi
  retry 3 apt-get install "${options[@]}" "$@"
}

forget_policy() { if grep -qs 'dialout lab' "$POLICY"; then rm -f "$POLICY"; fi; }
