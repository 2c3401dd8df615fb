# shellcheck shell=bash
# lab/node: what `kind create cluster --image` takes. Three steps: a base image, the control plane's images imported into the containerd
# of a container made from it, and a commit of that container.
NODE_TAG=lab/node:$KUBERNETES_VERSION
# By name, not by label: a commit hands the container's labels on to the image, and so to every cluster made from it.
BUILD_CONTAINER=dialout-lab-node-build

node_image() { echo "$NODE_TAG node root:node tool:kubernetes/kubelet tool:kubernetes/kubeadm tool:kubernetes/kubectl tool:crictl/crictl"; }

# Called by work_out_image_ids, when those of its parts are known.
node_image_id() {
  local line part
  {
    echo "${FOLDER_ID[node]}" "${DOWNLOADS[kind-files]}" "$(node_names)"
    for part in $(node_image | cut -d' ' -f3-); do part_id "$part"; done
    for line in "${NODE_IMAGES[@]}"; do echo "${IMAGE_ID[${line%% *}]}"; done
    cat "$LAB/lib/node-image.sh"
  } | hash_of_stdin
}

# our name, and the name that kubeadm looks for
node_names() {
  local component
  for component in kube-apiserver kube-controller-manager kube-scheduler kube-proxy; do echo "lab/k8s-$component:tmp registry.k8s.io/$component:$KUBERNETES_VERSION"; done
  echo "lab/k8s-pause:tmp $PAUSE_IMAGE"
  echo "lab/k8s-etcd:tmp $ETCD_IMAGE"
  echo "lab/k8s-coredns:tmp $COREDNS_IMAGE"
}

ensure_node_image() {
  local began=$SECONDS
  run "image $NODE_TAG" image-node build_node_image
  detail "image $NODE_TAG: built in $((SECONDS - began)) s"
}

build_node_image() {
  local container line ours theirs tags=()
  trap remove_node_leftovers EXIT
  for line in "${NODE_IMAGES[@]}"; do build_image "$line"; tags+=("${line%% *}"); done
  build_node_base
  container=$(docker run -d --privileged --network none --name "$BUILD_CONTAINER" --entrypoint /bin/sleep lab/node-base:tmp infinity) \
    || { echo "A privileged container does not start. Where CAP_SYS_RESOURCE is missing, stop your engine and let the lab start its own (lab/README.md, Docker)"; return 1; }
  docker exec -d "$container" /usr/bin/containerd
  local deadline=$((SECONDS + 60))
  until docker exec "$container" ctr version >/dev/null 2>&1; do ((SECONDS < deadline)) || { echo "containerd does not answer in the node"; return 1; }; sleep 0.2; done
  docker save "${tags[@]}" | docker exec -i "$container" ctr -n k8s.io images import --no-unpack -
  while read -r ours theirs; do
    docker exec "$container" ctr -n k8s.io images tag "docker.io/$ours" "$theirs"
    docker exec "$container" ctr -n k8s.io images rm "docker.io/$ours"
  done < <(node_names)
  # shellcheck disable=SC2016
  docker exec "$container" sh -c 'kill $(pidof containerd); while pidof containerd >/dev/null; do sleep 0.1; done'
  local before; before=$(docker image inspect --format '{{.Id}}' "$NODE_TAG" 2>/dev/null || true)
  docker commit --change 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' --change "LABEL $RECIPE_LABEL=${IMAGE_ID[$NODE_TAG]}" "$container" "$NODE_TAG"
  [ "$(docker image inspect --format '{{len .Config.Labels}}' "$NODE_TAG")" = 1 ] || { echo "$NODE_TAG carries labels that every cluster would inherit"; return 1; }
  docker rm -f "$container" >/dev/null
  forget_replaced "$NODE_TAG" "$before"
}

build_node_base() {
  local context part; context=$(scratch node)
  cp -r "$LAB/images/node/." "$context"
  for part in $(node_image | cut -d' ' -f3-); do place_part "$part" "$context"; done
  cp -r "$(download_dir kind-files)" "$context/files"
  patch_kind_files "$context/files/etc"
  printf '%s' "$KUBERNETES_VERSION" > "$context/version"
  docker_build lab/node-base:tmp "${IMAGE_ID[$NODE_TAG]}" "$context"
  rm -rf "$context"
}

# Debian's containerd is at /usr/bin and older than kind's; limits cannot be raised and OOM scores not lowered without CAP_SYS_RESOURCE, which the
# kubelet's user-namespace mode and containerd's restrict_oom_score_adj tolerate.
patch_kind_files() {
  sed -i 's#/usr/local/bin/containerd#/usr/bin/containerd#; /^OOMScoreAdjust=/d; s/^Limit\(.*\)=infinity/# &/' "$1/systemd/system/containerd.service"
  sed -i "s/restrict_oom_score_adj = false/restrict_oom_score_adj = true/; s#sandbox_image = .*#sandbox_image = \"$PAUSE_IMAGE\"#; /^\[proxy_plugins/,/^\$/d" "$1/containerd/config.toml"
  echo 'KUBELET_EXTRA_ARGS=--runtime-cgroups=/system.slice/containerd.service --feature-gates=KubeletInUserNamespace=true' > "$1/default/kubelet"
  ! grep -q 'fuse-overlayfs' "$1/containerd/config.toml" || { echo "kind's containerd config has changed: its proxy plugin is still there"; return 1; }
}

# Also called by `up` for what a killed run left.
remove_node_leftovers() {
  local line
  docker rm -f "$BUILD_CONTAINER" >/dev/null 2>&1 || true
  for line in "${NODE_IMAGES[@]}" lab/node-base:tmp; do docker rmi "${line%% *}" >/dev/null 2>&1 || true; done
}
