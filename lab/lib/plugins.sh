# shellcheck shell=bash
# A set of plugins is a `bin` folder for PATH and a PULUMI_HOME. The genuine set and the stand-ins have one each, side by side.
set_dir() { printf '%s/sets/%s\n' "$LAB_HOME" "$1"; }

# The stand-ins are bundled from lab/plugins and lab/langhost; their identity is that of their sources.
standin_id() {
  { folder_contents "$LAB/plugins"; folder_contents "$LAB/langhost"; cat "$REPO/package-lock.json" "$REPO/scripts/build.mjs"; } | hash_of_stdin
}
standin_dir() { printf '%s/bin/standin-%s\n' "$LAB_HOME" "$(standin_id)"; }

ensure_standins() {
  local began=$SECONDS into
  [ ! -d "$(standin_dir)" ] || return 0
  # The bundler is one of the project's own packages.
  if [ ! -d "$REPO/node_modules/esbuild" ]; then run "npm ci" npm-ci install_packages_of_program; fi
  into=$(scratch standin)
  run "stand-ins, bundling" standin "$LAB/plugins/pack.sh" "$into"
  mv -T "$into" "$(standin_dir)"
  detail "stand-in plugins: bundled in $((SECONDS - began)) s"
}
install_packages_of_program() {
  cd "$REPO" || return
  retry 3 npm ci --no-progress
  cp package-lock.json node_modules/.dialout-lock # ./demo looks for it
}

# Where the set's three programs are.
program_of() { # set, name
  case $1 in genuine) echo "$(genuine_dir)/$2" ;; standin) echo "$(standin_dir)/$2" ;; esac
}

# What is installed into PULUMI_HOME: name, version, program, identity. A changed identity is installed anew.
set_plugins() {
  echo "kubernetes $PLUGIN_KUBERNETES_VERSION $(tool_dir pulumi-kubernetes)/pulumi-resource-kubernetes $(tool_id pulumi-kubernetes)"
  local name version id=$GENUINE_ID
  if [ "$1" = standin ]; then id=$(standin_id); fi
  for name in docker command; do
    version=PLUGIN_${name^^}_VERSION
    echo "$name ${!version} $(program_of "$1" "pulumi-resource-$name") $id"
  done
}

ensure_set() {
  local set=$1 name version program id marker home
  home=$(set_dir "$set")/pulumi
  if [ "$set" = standin ]; then ensure_standins; fi
  fill_bin "$set" "$(set_dir "$set")/bin"
  mkdir -p "$home"
  while read -r name version program id; do
    marker=$(set_dir "$set")/.$name-$version
    if [ "$(cat "$marker" 2>/dev/null)" = "$id" ] && [ -d "$home/plugins/resource-$name-v$version" ]; then continue; fi
    rm -f "$marker"
    run "plugin $name $version ($set)" "plugin-$set-$name" install_plugin "$home" "$name" "$version" "$program"
    printf '%s\n' "$id" > "$marker"
    detail "plugin $name $version ($set)"
  done < <(set_plugins "$set")
}

install_plugin() { # PULUMI_HOME, name, version, program
  PULUMI_HOME=$1 PULUMI_SKIP_UPDATE_CHECK=true "$LAB_HOME/bin/pulumi/pulumi" plugin install resource "$2" "$3" --file "$4" --reinstall
}

# The folder for PATH.
fill_bin() { # set, folder
  local work; work=$(scratch bin)
  ln -s "$LAB_HOME/bin/pulumi/pulumi" "$LAB_HOME/bin/kind/kind" "$LAB_HOME/bin/kubernetes/kubectl" \
    "$(program_of "$1" pulumi-language-nodejs)" "$LAB/langhost/pulumi-resource-pulumi-nodejs" "$work"
  if ! diff -rq --no-dereference "$work" "$2" >/dev/null 2>&1; then
    rm -rf "$2"; mkdir -p "${2%/*}"
    mv -T "$work" "$2"
  else rm -rf "$work"; fi
}

# Ends without output when the set is not complete.
set_is_ready() {
  local name version program id
  [ -x "$(set_dir "$1")/bin/pulumi" ] || return 1
  while read -r name version program id; do
    [ "$(cat "$(set_dir "$1")/.$name-$version" 2>/dev/null)" = "$id" ] || return 1
  done < <(set_plugins "$1")
}

print_env() {
  local set ingress=lab-ingress class=lab.ingress.networking.knative.dev; set=$(plugins_in_use)
  set_is_ready "$set" || die unfit "the lab is not up ($LAB_HOME has no complete $set set)" "lab/lab up --plugins $set"
  if [ "$set" = genuine ] && has_kourier; then ingress=kourier; class=kourier.ingress.networking.knative.dev; fi
  local bin; bin=$(set_dir "$set")/bin
  cat <<ENV
export PATH="$bin:\$PATH"
export PULUMI_HOME=$(set_dir "$set")/pulumi
export PULUMI_SKIP_UPDATE_CHECK=true
export PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION=true
export DIALOUT_LAB=1
export LAB_HOME=$LAB_HOME
export LAB_PLUGINS=$set
export LAB_PLUGINS_IN_USE=$set
export LAB_INGRESS=$ingress
export LAB_INGRESS_CLASS=$class
ENV
}
