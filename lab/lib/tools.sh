# shellcheck shell=bash
# Programs built from Go modules, kept in LAB_HOME/bin/<tool>-<id>. The id is the hash of the recipe: toolchain, linker flags, packages and the
# files of go/<tool>. So a changed recipe is rebuilt, and an archive <tool>-<id>.tar.xz in a cache folder is what it says it is.
# The strings below are part of the hash: a changed blank makes every cache miss.

# binary=package ...
declare -A PACKAGES=(
  [kind]="kind=sigs.k8s.io/kind"
  [pause]="pause=."
  [crictl]="crictl=sigs.k8s.io/cri-tools/cmd/crictl"
  [etcd]="etcd=go.etcd.io/etcd/server/v3"
  [coredns]="coredns=github.com/coredns/coredns"
  [kubernetes]="kubelet=k8s.io/kubernetes/cmd/kubelet kubeadm=k8s.io/kubernetes/cmd/kubeadm kubectl=k8s.io/kubernetes/cmd/kubectl kube-apiserver=k8s.io/kubernetes/cmd/kube-apiserver kube-controller-manager=k8s.io/kubernetes/cmd/kube-controller-manager kube-scheduler=k8s.io/kubernetes/cmd/kube-scheduler kube-proxy=k8s.io/kubernetes/cmd/kube-proxy"
  [knative]="controller=knative.dev/serving/cmd/controller activator=knative.dev/serving/cmd/activator autoscaler=knative.dev/serving/cmd/autoscaler webhook=knative.dev/serving/cmd/webhook queue=knative.dev/serving/cmd/queue"
  [kube-router]="kube-router=github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"
  [pulumi]="pulumi=github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
  [pulumi-kubernetes]="pulumi-resource-kubernetes=."
  [toxiproxy]="toxiproxy-server=github.com/Shopify/toxiproxy/v2/cmd/server"
)
base_version=k8s.io/component-base/version; client_version=k8s.io/client-go/pkg/version
declare -A LINKER_FLAGS=(
  [kubernetes]="-X $base_version.gitVersion=$KUBERNETES_VERSION -X $base_version.gitMajor=1 -X $base_version.gitMinor=34 -X $base_version.gitTreeState=clean -X $base_version.buildDate=2026-01-01T00:00:00Z -X $client_version.gitVersion=$KUBERNETES_VERSION -X $client_version.gitMajor=1 -X $client_version.gitMinor=34"
  [pulumi]="-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=$PULUMI_VERSION"
)
# What `up` needs, quick ones first; toxiproxy is only for the fault tests: lab/lab tool toxiproxy.
TOOLS=(kind pause crictl etcd coredns knative kube-router pulumi pulumi-kubernetes kubernetes)
# Seconds from source on 2 cores, for `plan`.
declare -A BUILD_SECONDS=([kind]=20 [pause]=5 [crictl]=40 [etcd]=40 [coredns]=150 [knative]=140 [kube-router]=140 [pulumi]=300 [pulumi-kubernetes]=400 [kubernetes]=520 [toxiproxy]=20)

# Hashes what the Go command itself would say (GOVERSION, GOOS, GOARCH), so that `plan` needs no Go.
hash_tool() {
  local files=("$LAB/go/$1"/go.mod "$LAB/go/$1"/go.sum "$LAB/go/$1"/*.go) present=() file
  for file in "${files[@]}"; do [ ! -f "$file" ] || present+=("$file"); done
  { printf '%s\nlinux\namd64\n%s\n%s\n' "$GO_TOOLCHAIN" "${LINKER_FLAGS[$1]:-}" "${PACKAGES[$1]}"; cat "${present[@]}"; } | hash_of_stdin
}
declare -A TOOL_ID=()
for tool in "${!PACKAGES[@]}"; do TOOL_ID[$tool]=$(hash_tool "$tool"); done
tool_id() { printf '%s\n' "${TOOL_ID[$1]}"; }
tool_dir() { printf '%s/bin/%s-%s\n' "$LAB_HOME" "$1" "${TOOL_ID[$1]}"; }

# How a tool would be had: here, unpack FILE, or build.
tool_way() {
  local hit
  if [ -d "$(tool_dir "$1")" ]; then echo here; return; fi
  hit=$(cached_file "$1-$(tool_id "$1").tar.xz")
  if [ -n "$hit" ]; then echo "unpack $hit"; else echo build; fi
}

ensure_tool() {
  local tool=$1 way began=$SECONDS; way=$(tool_way "$tool")
  case $way in
    here) ;;
    build)
      check_go
      run "$tool, from source (about $(clock "${BUILD_SECONDS[$tool]}"))" "build-$tool" build_tool "$tool"
      detail "$tool: built in $(clock $((SECONDS - began)))" ;;
    unpack*)
      run "$tool, unpacking" "unpack-$tool" unpack_tool "$tool" "${way#unpack }"
      detail "$tool: unpacked in $((SECONDS - began)) s from ${way#unpack }" ;;
  esac
  point_to "$LAB_HOME/bin/$tool" "$tool-${TOOL_ID[$tool]}"
}

check_go() {
  local fix="install Go 1.21 or newer (https://go.dev/dl); it fetches $GO_TOOLCHAIN itself"
  command -v go >/dev/null || die unfit "go is not on PATH" "$fix"
  GOTOOLCHAIN=local go env GOVERSION | grep -Eq '^go1\.(2[1-9]|[3-9][0-9])' || die unfit "$(GOTOOLCHAIN=local go version) is too old" "$fix"
}

unpack_tool() {
  local into; into=$(scratch "unpack-$1")
  tar -C "$into" -xJf "$2"
  keep_tool "$1" "$into"
}

# Complete or not at all: every binary must be there and not empty before the rename.
keep_tool() {
  local pair
  for pair in ${PACKAGES[$1]}; do [ -s "$2/${pair%%=*}" ] || { echo "$1: ${pair%%=*} is missing"; return 1; }; done
  chmod 0755 "$2" "$2"/*
  mv -T "$2" "$(tool_dir "$1")"
}

# Module and build caches of the lab's own, so that `remove` removes them and the user's are left as they are.
go_environment() {
  export GOTOOLCHAIN=$GO_TOOLCHAIN GOMODCACHE=$LAB_HOME/go/mod GOCACHE=$LAB_HOME/go/build GOTMPDIR=$LAB_HOME/tmp GOFLAGS="-modcacherw -buildvcs=false" CGO_ENABLED=0 GOWORK=off
  export GOOS=linux GOARCH=amd64; unset GO111MODULE
}

build_tool() {
  local tool=$1 work out pair; work=$(scratch "build-$1"); out=$(scratch "out-$1")
  go_environment
  cp "$LAB/go/$tool"/* "$work"; cd "$work" || return
  retry 4 derive_sources "$tool"
  retry 4 fetch_modules "$tool"
  for pair in ${PACKAGES[$tool]}; do
    go build -v -trimpath -ldflags "-s -w ${LINKER_FLAGS[$tool]:-}" -o "$out/${pair%%=*}" "${pair#*=}"
  done
  cd /; rm -rf "$work"
  keep_tool "$tool" "$out"
}

# Downloads exactly the modules that the packages need (`go mod download` would fetch the whole graph).
fetch_modules() {
  local pair packages=()
  for pair in ${PACKAGES[$1]}; do packages+=("${pair#*=}"); done
  go list -deps "${packages[@]}" >/dev/null
}

# Files that a recipe takes from its own module; go.sum fixes their contents.
derive_sources() {
  [ "$1" = pulumi-kubernetes ] || return 0
  local provider version
  provider=$(go mod download -json github.com/pulumi/pulumi-kubernetes/provider/v4 | module_dir)/cmd/pulumi-resource-kubernetes
  version=$(sed -n 's/^var version = "\(.*\)"/\1/p' main.go)
  jq -c --arg v "$version" '.version = $v' "$provider/schema.json" > schema-embed.json &&
    jq -c . "$provider/terraform-mapping.json" > terraform-mapping-embed.json
}
module_dir() { sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p'; }

# Prints the folder of a module that is used for its files. go.sum in go/<recipe> fixes its contents.
module_files() { # recipe, module
  local work dir; work=$(scratch module)
  cp "$LAB/go/$1"/go.* "$work"
  dir=$(cd "$work" || exit; go_environment; retry 4 go mod download -json "$2" 2>&1 | tee "$LAB_HOME/logs/module-$1.log" | module_dir)
  rm -rf "$work"
  [ -d "$dir" ] || { cat "$LAB_HOME/logs/module-$1.log"; return 1; }
  printf '%s\n' "$dir"
}
