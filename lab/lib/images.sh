# shellcheck shell=bash
# Images in the local Docker. Each carries the hash of everything it is made of as a label, so `up` rebuilds exactly what changed.
RECIPE_LABEL=dialout.lab.recipe

# tag, recipe (a folder of images/, or binary:PATH:USER), parts. A part becomes a file of the build context:
#   root:R -> rootfs.tar    tool:T/B -> B    node, envoy, genuine:B -> the program    image:TAG -> nothing, but is part of the hash
IMAGES=(
  "lab/debian:bookworm rootfs root:slim"
  "lab/iptables:bookworm rootfs root:iptables"
  "lab/pool:bookworm rootfs root:pool"
  "lab/worker:trixie worker root:worker node"
  "lab/redis:7 redis root:redis"
  "lab/debian-node:bookworm debian-node image:lab/debian:bookworm node"
  "lab/kubectl:$KUBERNETES_VERSION binary:/bin/kubectl:65532 tool:kubernetes/kubectl"
  "kind.local/knative-controller:$KNATIVE_VERSION binary:/ko-app/controller:65532 tool:knative/controller"
  "kind.local/knative-activator:$KNATIVE_VERSION binary:/ko-app/activator:65532 tool:knative/activator"
  "kind.local/knative-autoscaler:$KNATIVE_VERSION binary:/ko-app/autoscaler:65532 tool:knative/autoscaler"
  "kind.local/knative-webhook:$KNATIVE_VERSION binary:/ko-app/webhook:65532 tool:knative/webhook"
  "kind.local/knative-queue:$KNATIVE_VERSION binary:/ko-app/queue:65532 tool:knative/queue"
  "kind.local/kube-router:$KUBE_ROUTER_VERSION kube-router image:lab/iptables:bookworm tool:kube-router/kube-router"
  "kind.local/lab-ingress:1 ingress image:lab/debian-node:bookworm ingress"
)
# Only where the genuine binary is at hand.
KOURIER_IMAGES=(
  "kind.local/envoy:$ENVOY_VERSION envoy image:lab/debian:bookworm envoy"
  "kind.local/kourier:$KOURIER_VERSION binary:/ko-app/kourier:65532 genuine:kourier"
)
# What kubeadm wants inside the node. Built under names of our own, renamed inside the node's containerd, then removed from Docker:
# the user's Docker never gets an image under a name that is not ours.
NODE_IMAGES=(
  "lab/k8s-kube-apiserver:tmp binary:/usr/local/bin/kube-apiserver:0 tool:kubernetes/kube-apiserver"
  "lab/k8s-kube-controller-manager:tmp binary:/usr/local/bin/kube-controller-manager:0 tool:kubernetes/kube-controller-manager"
  "lab/k8s-kube-scheduler:tmp binary:/usr/local/bin/kube-scheduler:0 tool:kubernetes/kube-scheduler"
  "lab/k8s-kube-proxy:tmp kube-proxy image:lab/iptables:bookworm tool:kubernetes/kube-proxy"
  "lab/k8s-pause:tmp binary:/pause:65535 tool:pause/pause"
  "lab/k8s-etcd:tmp binary:/usr/local/bin/etcd:0 tool:etcd/etcd"
  # As root, of whose capabilities kubeadm leaves it CAP_NET_BIND_SERVICE for port 53: the released image has that as a file capability.
  "lab/k8s-coredns:tmp binary:/coredns:0 tool:coredns/coredns"
)

wanted_images() { printf '%s\n' "${IMAGES[@]}"; if has_kourier; then printf '%s\n' "${KOURIER_IMAGES[@]}"; fi; }

# Names and contents of all files below a folder; tests and build results are not part of what is built.
folder_contents() { (cd "$1" || exit; find . -name dist -prune -o -type f ! -name '*.test.ts' -print0 | sort -z | xargs -0 sha256sum); }

# Ids of images are worked out once for a run, on the first question; an image that others are made from comes before them in the lists.
declare -A IMAGE_ID=() FOLDER_ID=()
work_out_image_ids() {
  local line tag recipe parts part folder
  for folder in "$LAB"/images/*; do FOLDER_ID[${folder##*/}]=$(folder_contents "$folder" | hash_of_stdin); done
  FOLDER_ID[ingress-sources]=$(folder_contents "$LAB/ingress" | hash_of_stdin)
  while read -r line; do
    read -r tag recipe parts <<<"$line"
    IMAGE_ID[$tag]=$({ echo "$tag $recipe" "${FOLDER_ID[${recipe%%:*}]}"; for part in $parts; do part_id "$part"; done; } | hash_of_stdin)
  done < <(printf '%s\n' "${IMAGES[@]}" "${KOURIER_IMAGES[@]}" "${NODE_IMAGES[@]}")
  IMAGE_ID[$NODE_TAG]=$(node_image_id)
}
part_id() {
  local value=${1#*:}
  case $1 in
    root:*) root_id "$value" ;;
    tool:*) tool_id "${value%/*}" ;;
    genuine:*) echo "$GENUINE_ID" ;;
    node | envoy) echo "${DOWNLOADS[$1]}" ;;
    ingress) echo "${FOLDER_ID[ingress-sources]}" ;;
    image:*) echo "${IMAGE_ID[$value]}" ;;
  esac
}

# Fills HAVE[tag]=recipe id from one question to Docker; tags that it does not know are absent.
declare -A HAVE=()
read_images() {
  local tags line label tag; HAVE=()
  work_out_image_ids
  mapfile -t tags < <({ wanted_images; node_image; } | cut -d' ' -f1)
  while IFS='|' read -r label line; do
    for tag in $line; do HAVE[$tag]=$label; done
  done < <(docker image inspect --format "{{index .Config.Labels \"$RECIPE_LABEL\"}}|{{range .RepoTags}}{{.}} {{end}}" "${tags[@]}" 2>/dev/null || true)
}

stale_images() {
  local line
  while read -r line; do [ "${HAVE[${line%% *}]:-}" = "${IMAGE_ID[${line%% *}]}" ] || echo "$line"; done < <(wanted_images)
}

ensure_image() {
  local began=$SECONDS tag=${1%% *}
  run "image $tag" "image-$(tr '/:' '--' <<<"$tag")" build_image "$1"
  detail "image $tag: built in $((SECONDS - began)) s"
}

build_image() {
  local tag recipe parts part context; read -r tag recipe parts <<<"$1"
  context=$(scratch image)
  [ ${#IMAGE_ID[@]} -gt 0 ] || work_out_image_ids
  cp -r "$LAB/images/${recipe%%:*}/." "$context"
  for part in $parts; do place_part "$part" "$context"; done
  case $recipe in binary:*)
    local path user; IFS=: read -r _ path user <<<"$recipe"
    part=${parts##*[:/]}
    sed -i "s#@BINARY@#$part#; s#@PATH@#$path#; s#@USER@#$user#" "$context/Dockerfile" ;;
  esac
  local before; before=$(docker image inspect --format '{{.Id}}' "$tag" 2>/dev/null || true)
  docker_build "$tag" "${IMAGE_ID[$tag]}" "$context"
  forget_replaced "$tag" "$before"
  rm -rf "$context"
}
# An image that lost its tag to a newer build goes. While a container or an image made from it needs it, it stays, and later runs try again.
forget_replaced() { # tag, id before
  if [ -z "$2" ] || [ "$2" = "$(docker image inspect --format '{{.Id}}' "$1")" ]; then return; fi
  echo "$2" >> "$LAB_HOME/docker/replaced"
}
remove_replaced_images() {
  local list=$LAB_HOME/docker/replaced id
  [ -s "$list" ] || return 0
  while read -r id; do
    case $(docker image inspect --format '{{len .RepoTags}}' "$id" 2>/dev/null || echo gone) in
      0) docker rmi "$id" >/dev/null 2>&1 || echo "$id" ;;
      gone) ;;
      *) ;; # somebody gave it a name of their own: theirs now
    esac
  done < <(sort -u "$list") > "$list.new"
  mv "$list.new" "$list"
}
place_part() {
  local value=${1#*:} into=$2
  case $1 in
    root:*) link_or_copy "$(root_file "$value")" "$into/rootfs.tar" ;;
    tool:*) link_or_copy "$(tool_dir "${value%/*}")/${value#*/}" "$into/${value#*/}" ;;
    genuine:*) link_or_copy "$(genuine_dir)/$value" "$into/$value" ;;
    node | envoy) link_or_copy "$(download_dir "$1")/$1" "$into/$1" ;;
    ingress) mkdir "$into/ingress"; find "$LAB/ingress" -maxdepth 1 -name '*.ts' ! -name '*.test.ts' -exec cp -t "$into/ingress" {} +; echo '{"type":"module"}' > "$into/ingress/package.json" ;;
  esac
}
link_or_copy() { ln "$1" "$2" 2>/dev/null || cp "$1" "$2"; }

# Nothing in these builds needs a network. Old engines without buildx have only the classic builder.
docker_build() { # tag, recipe id, context
  if docker buildx version >/dev/null 2>&1; then docker build --progress plain --network none --label "$RECIPE_LABEL=$2" -t "$1" "$3"
  else DOCKER_BUILDKIT=0 docker build --force-rm --network none --label "$RECIPE_LABEL=$2" -t "$1" "$3"; fi
}
