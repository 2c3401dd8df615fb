# shellcheck shell=bash
# Which of two ways this machine can run the demo: `public` uses the user's Docker, kind, Pulumi and the internet; `lab` builds or
# unpacks all of them from package registries. A stack stays with the way it was made by (remembered in the state folder).

# Can images be pulled? A registry's /v2/ answers 401 or 200; anything else (also a proxy's 403) means no.
image_registry_reachable() {
  command -v curl >/dev/null || return 1
  local code
  code=$(curl -s -o /dev/null -m 6 -w '%{http_code}' "${1:-https://registry-1.docker.io/v2/}" 2>/dev/null || true)
  [ "$code" = 401 ] || [ "$code" = 200 ]
}

docker_works() { command -v docker >/dev/null && docker info >/dev/null 2>&1; }

# Prints what is missing for the public way, a line each; prints nothing when all is there.
public_missing() {
  command -v node >/dev/null || say_missing node "https://nodejs.org (20.19 or newer)"
  docker_works || say_missing "a Docker engine that answers" "start Docker, or install it: https://docs.docker.com/engine/install"
  command -v kind >/dev/null || say_missing kind "https://kind.sigs.k8s.io/docs/user/quick-start/#installation (0.30 or newer)"
  command -v pulumi >/dev/null || say_missing pulumi "https://www.pulumi.com/docs/install (3.200 or newer)"
  image_registry_reachable || say_missing "access to image registries" "check the network or the proxy settings"
}
say_missing() { printf '%s\t%s\n' "$1" "$2"; }

lab_possible() { command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] && command -v go >/dev/null && command -v node >/dev/null; }

# Sets MODE and MODE_WHY, or ends with exit code 2 and what to do.
choose_mode() {
  local asked=${DIALOUT_MODE:-auto} remembered missing
  remembered=$(cat "$(state_dir)/mode" 2>/dev/null || true)
  case $asked in
    public|lab) MODE=$asked; MODE_WHY="DIALOUT_MODE=$asked" ;;
    auto)
      if [ -n "$remembered" ]; then MODE=$remembered; MODE_WHY="the stack was made that way"
      else
        missing=$(public_missing)
        if [ -z "$missing" ]; then MODE=public; MODE_WHY="Docker, kind, Pulumi and image registries are there"
        elif lab_possible; then MODE=lab; MODE_WHY="missing for the public way: $(cut -f1 <<<"$missing" | paste -sd, | sed 's/,/, /g')"
        else
          say "error: this machine can run neither way."
          while IFS=$'\t' read -r what how; do say "  public way, missing: $what. fix: $how"; done <<<"$missing"
          say "  lab way: needs Debian, root, Go and Node.js"
          exit $EXIT_ENV
        fi
      fi ;;
    *) bad_usage "DIALOUT_MODE='$asked' must be auto, public or lab" ;;
  esac
  if [ "$MODE" = lab ]; then choose_plugins; fi
  STACK=${DIALOUT_STACK:-$(default_stack)}
  [[ $STACK =~ ^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$ ]] || bad_usage "DIALOUT_STACK='$STACK' must be letters, digits, . _ -"
  export MODE MODE_WHY STACK
}

# The lab has a stack for each set of plugins: they differ in the ingress that their settings name.
choose_plugins() {
  LAB_PLUGINS=${LAB_PLUGINS:-$(cat "$(state_dir)/plugins" 2>/dev/null || echo auto)}
  if [ "$LAB_PLUGINS" = auto ]; then LAB_PLUGINS=$(lab/lab has-genuine 2>/dev/null && echo genuine || echo standin); fi
  export LAB_PLUGINS
}

default_stack() {
  if [ "$MODE" != lab ]; then echo dev
  elif [ "$LAB_PLUGINS" = standin ]; then echo lab-standin
  else echo lab; fi
}
