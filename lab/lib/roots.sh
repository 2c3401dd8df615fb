# shellcheck shell=bash
# Root file systems from Debian packages, kept as LAB_HOME/roots/<name>-<id>.tar. The id covers suite and package list, not the day: a kept
# root does not follow Debian's updates until it is removed.
# name -> suite package,package
declare -A ROOTS=(
  [node]="bookworm systemd,systemd-sysv,dbus,containerd,runc,containernetworking-plugins,conntrack,iptables,nftables,iproute2,ethtool,util-linux,mount,kmod,libseccomp2,pigz,ca-certificates,curl,jq,procps,socat,ebtables"
  [slim]="bookworm ca-certificates"
  [iptables]="bookworm iptables,nftables,ipset,conntrack,kmod,iproute2"
  [pool]="bookworm bash,coreutils,findutils,grep,ripgrep,git,file,procps,ca-certificates"
  [worker]="trixie bash,coreutils,findutils,grep,ripgrep,git,file,procps,ca-certificates,util-linux,python3-minimal"
  [redis]="bookworm redis-server"
)
ROOT_NAMES=(node slim iptables pool worker redis) # the biggest first
ROOT_OPTIONS=(--variant=minbase --format=tar --dpkgopt=force-unsafe-io --aptopt='Acquire::Retries "5"' --aptopt='Acquire::Languages "none"'
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*')

declare -A ROOT_ID=()
for root in "${ROOT_NAMES[@]}"; do ROOT_ID[$root]=$(printf '%s\n' "${ROOTS[$root]}" "${ROOT_OPTIONS[@]}" | hash_of_stdin); done
root_id() { printf '%s\n' "${ROOT_ID[$1]}"; }
root_file() { printf '%s/roots/%s-%s.tar\n' "$LAB_HOME" "$1" "${ROOT_ID[$1]}"; }

root_way() {
  local hit
  if [ -f "$(root_file "$1")" ]; then echo here; return; fi
  hit=$(cached_file "root-$1-$(root_id "$1").tar.xz")
  if [ -n "$hit" ]; then echo "unpack $hit"; else echo build; fi
}

missing_roots() { local name; for name in "${ROOT_NAMES[@]}"; do [ -f "$(root_file "$name")" ] || echo "$name"; done; }

# Two at a time: one waits for the network while the other unpacks.
ensure_roots() {
  local name running=0 failed=0
  for name in "$@"; do
    if ((running >= 2)); then wait -n || failed=1; running=$((running - 1)); fi
    ensure_root "$name" & running=$((running + 1))
  done
  while ((running > 0)); do wait -n || failed=1; running=$((running - 1)); done
  return $failed
}

ensure_root() {
  local began=$SECONDS way; way=$(root_way "$1")
  case $way in
    build) run "root $1 (${ROOTS[$1]%% *})" "root-$1" build_root "$1" ;;
    unpack*) run "root $1, unpacking" "root-$1" unpack_root "$1" "${way#unpack }" ;;
  esac
  detail "root $1 (${ROOTS[$1]%% *}): ${way%% *} took $((SECONDS - began)) s"
}

build_root() {
  local work suite packages; work=$(scratch "root-$1")
  read -r suite packages <<<"${ROOTS[$1]}"
  retry 4 make_root "$work" "$suite" "$packages"
  mv "$work/root.tar" "$(root_file "$1")"
  rm -rf --one-file-system "$work"
}
make_root() { rm -f "$1/root.tar"; TMPDIR=$1 mmdebstrap "${ROOT_OPTIONS[@]}" --include="$3" "$2" "$1/root.tar"; }

unpack_root() {
  local work; work=$(scratch "root-$1")
  xz -dcT0 "$2" > "$work/root.tar"
  mv "$work/root.tar" "$(root_file "$1")"
}
