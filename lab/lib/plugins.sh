# shellcheck shell=bash
# A set of plugins is a `bin` folder for PATH and a PULUMI_HOME. The genuine set and the stand-ins have one each, side by side.
set_dir() { printf '%s/sets/%s\n' "$LAB_HOME" "$1"; }

standin_program() {
  case $1 in
    pulumi-language-nodejs) echo "$LAB/langhost/$1" ;;
    *) echo "$LAB/plugins/bin/$1" ;;
  esac
}
standin_id() { for program in "${GENUINE_PLUGINS[@]}"; do standin_program "$program"; done | hash_of_stdin; }

# What is installed into PULUMI_HOME: name, version, program, identity. A changed identity is installed anew.
set_plugins() {
  echo "kubernetes $PLUGIN_KUBERNETES_VERSION $(tool_dir pulumi-kubernetes)/pulumi-resource-kubernetes $(tool_id pulumi-kubernetes)"
  local name version id program
  if [ "$1" = genuine ]; then id=$GENUINE_ID; else id=$(standin_id); fi
  for name in docker command; do
    version=PLUGIN_${name^^}_VERSION; program=pulumi-resource-$name
    if [ "$1" = genuine ]; then program=$(genuine_dir)/$program; else program=$(set_dir standin)/bin/$program; fi
    echo "$name ${!version} $program $id"
  done
}

ensure_set() {
  local set=$1 name version program id marker home
  home=$(set_dir "$set")/pulumi
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

# The folder for PATH: links to tools, and for stand-ins launchers that find this repository wherever they are copied to.
fill_bin() {
  local set=$1 bin=$2 work name
  work=$(scratch bin)
  ln -s "$LAB_HOME/bin/pulumi/pulumi" "$LAB_HOME/bin/kind/kind" "$LAB_HOME/bin/kubernetes/kubectl" "$LAB/bin/pulumi-resource-pulumi-nodejs" "$work"
  for name in "${GENUINE_PLUGINS[@]}"; do
    if [ "$set" = standin ]; then
      printf '#!/bin/sh\nexec "%s" "$@"\n' "$(standin_program "$name")" > "$work/$name"
      chmod 0755 "$work/$name"
    elif [ "$name" = pulumi-language-nodejs ]; then ln -s "$(genuine_dir)/$name" "$work/$name"; fi
  done
  if ! diff -rq --no-dereference "$work" "$bin" >/dev/null 2>&1; then
    mkdir -p "$(dirname "$bin")"
    rm -rf "$bin"; mv -T "$work" "$bin"
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
