# shellcheck shell=bash
# The four programs that the registries do not serve, prebuilt in a cache folder's genuine.tar.xz. All optional: there are stand-ins.
GENUINE_ARCHIVE=genuine.tar.xz
GENUINE_PLUGINS=(pulumi-language-nodejs pulumi-resource-docker pulumi-resource-command)

# Identified by the archive's contents, hashed once for a run and its steps; without an archive, what was unpacked from one earlier counts.
if [ -z "${GENUINE_ID+set}" ]; then
  GENUINE_ID=
  archive=$(cached_file $GENUINE_ARCHIVE)
  if [ -n "$archive" ]; then GENUINE_ID=$(hash_of_stdin < "$archive")
  elif [ -d "$LAB_HOME/bin/genuine" ]; then GENUINE_ID=$(readlink "$LAB_HOME/bin/genuine"); GENUINE_ID=${GENUINE_ID##*genuine-}; fi
  export GENUINE_ID
fi
genuine_dir() { printf '%s/bin/genuine-%s\n' "$LAB_HOME" "$GENUINE_ID"; }

has_genuine() { has_files "${GENUINE_PLUGINS[@]}"; }
has_kourier() { has_files kourier; }

# Looks into the unpacked folder when it is there, else into the archive's list.
has_files() {
  local file names
  [ -n "$GENUINE_ID" ] || return 1
  if [ -d "$(genuine_dir)" ]; then
    for file in "$@"; do [ -x "$(genuine_dir)/$file" ] || return 1; done
  else
    names=$(tar -tJf "$(cached_file $GENUINE_ARCHIVE)")
    for file in "$@"; do grep -Eq "^(\./)?$file\$" <<<"$names" || return 1; done
  fi
}

ensure_genuine() {
  [ -n "$GENUINE_ID" ] || return 0
  if [ ! -d "$(genuine_dir)" ]; then
    run "genuine plugins, unpacking" genuine unpack_genuine
    detail "genuine plugins: unpacked from $(cached_file $GENUINE_ARCHIVE)"
  fi
  point_to "$LAB_HOME/bin/genuine" "genuine-$GENUINE_ID"
}
unpack_genuine() {
  local into; into=$(scratch genuine)
  tar -C "$into" -xJf "$(cached_file $GENUINE_ARCHIVE)"
  mv -T "$into" "$(genuine_dir)"
}

# genuine or standin, from the setting and what there is.
plugins_in_use() {
  case $LAB_PLUGINS in
    standin) echo standin ;;
    auto) if has_genuine; then echo genuine; else echo standin; fi ;;
    genuine)
      has_genuine || die unfit "no cache folder holds $GENUINE_ARCHIVE with ${GENUINE_PLUGINS[*]} (LAB_CACHE='$LAB_CACHE')" "LAB_CACHE=<folder with it> lab/lab up, or use the stand-ins: --plugins standin"
      echo genuine ;;
  esac
}
