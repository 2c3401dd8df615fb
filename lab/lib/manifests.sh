# shellcheck shell=bash
# Manifests in LAB_HOME/manifests: the released ones with our image names in place of theirs, and the lab's own.

write_manifests() {
  local from work; from=$(download_dir knative-manifests); work=$(scratch manifests)
  cp "$from/serving-crds.yaml" "$work"
  sed -E "s#gcr.io/knative-releases/knative.dev/serving/cmd/(queue|activator|autoscaler|controller|webhook)@sha256:[0-9a-f]{64}#kind.local/knative-\1:$KNATIVE_VERSION#" \
    "$from/serving-core.yaml" > "$work/serving-core.yaml"
  if has_kourier; then
    sed -E "s#gcr.io/knative-releases/knative.dev/net-kourier/cmd/kourier@sha256:[0-9a-f]{64}#kind.local/kourier:$KOURIER_VERSION#; s#docker.io/envoyproxy/envoy:[^ ]+#kind.local/envoy:$ENVOY_VERSION#" \
      "$from/kourier.yaml" > "$work/kourier.yaml"
  fi
  cp "$LAB"/manifests/*.yaml "$work"
  refuse_foreign_images "$work"
  mirror_folder "$work" "$LAB_HOME/manifests"
  rm -rf "$work"
}

# An image name that stays as released would be pulled from the internet, in the middle of a bring-up.
refuse_foreign_images() {
  local foreign; foreign=$(grep -HnE '^[[:space:]-]*"?(image|queue-sidecar-image)"?: *["a-z]' "$1"/*.yaml | grep -vE ': *"?kind\.local/' || true)
  [ -z "$foreign" ] || { printf 'these images are not ours:\n%s\n' "$foreign"; return 1; }
}

# Leaves files alone whose contents are the same, so that a rerun changes nothing.
mirror_folder() {
  local file
  for file in "$2"/*; do [ -e "$1/${file##*/}" ] || rm -f "$file"; done
  for file in "$1"/*; do cmp -s "$file" "$2/${file##*/}" || mv "$file" "$2/"; done
}
