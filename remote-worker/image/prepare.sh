#!/bin/sh
# Makes a base image fit: the tools that the worker and agents' commands need, a user for the commands, the folders.
# Installs only what is missing, so that a base with everything builds without a network.
set -eu

missing=""
need() { # package name per family: dnf apt apk
  command -v "$1" >/dev/null 2>&1 || missing="$missing $1"
}
for tool in bash base64 mkfifo find grep file git ps setpriv flock; do need "$tool"; done

package_of() {
  case "$1:$2" in
    base64:* | mkfifo:*) echo coreutils ;;
    find:*) echo findutils ;;
    git:dnf) echo git-core ;;
    ps:apk) echo procps ;;
    ps:dnf) echo procps-ng ;;
    ps:apt) echo procps ;;
    setpriv:apk) echo setpriv ;;
    flock:apk) echo flock ;;
    setpriv:* | flock:*) echo util-linux ;;
    *) echo "$1" ;;
  esac
}

if [ -n "$missing" ]; then
  if command -v microdnf >/dev/null 2>&1; then family=dnf install="microdnf install -y --nodocs --setopt=install_weak_deps=0"
  elif command -v dnf >/dev/null 2>&1; then family=dnf install="dnf install -y --nodocs --setopt=install_weak_deps=0"
  elif command -v apt-get >/dev/null 2>&1; then family=apt install="apt-get install -y --no-install-recommends"; apt-get update
  elif command -v apk >/dev/null 2>&1; then family=apk install="apk add --no-cache"
  else
    echo "error: the base image lacks:$missing, and has no microdnf, dnf, apt-get or apk to install them with. Use another BASE_IMAGE" >&2
    exit 1
  fi
  packages=""
  for tool in $missing; do packages="$packages $(package_of "$tool" $family)"; done
  echo "installing:$packages"
  $install $packages
  # Welcome but not needed; not every distribution has them.
  for extra in python3 ripgrep; do $install $extra || echo "note: $extra is not to be had here; the worker does without"; done
  case $family in
    dnf) { microdnf clean all || dnf clean all; } 2>/dev/null ;;
    apt) rm -rf /var/lib/apt/lists/* ;;
  esac
fi

command -v node >/dev/null 2>&1 || { echo "error: the base image has no node. Use a BASE_IMAGE with Node >= 20.19" >&2; exit 1; }
node -e 'const [a, b] = process.versions.node.split(".").map(Number); if (a < 20 || (a === 20 && b < 19)) { console.error(`error: node ${process.version} is older than 20.19. Use another BASE_IMAGE`); process.exit(1); }'

# Written by hand: useradd is not in minimal images.
grep -q '^[^:]*:[^:]*:1001:' /etc/group || echo 'sandbox:x:1001:' >> /etc/group
grep -q '^[^:]*:[^:]*:1001:' /etc/passwd || echo 'sandbox:x:1001:1001:commands of the worker:/workspace:/bin/bash' >> /etc/passwd

# Group 0 may write too: platforms that choose the uid keep the group.
mkdir -p /workspace /var/lib/dialout /run/dialout
chown 1001:0 /workspace
chmod 0775 /workspace
chmod 0700 /var/lib/dialout /run/dialout
