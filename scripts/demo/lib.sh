# shellcheck shell=bash
# Exit codes: see usage in ./demo. Everything that is not a result goes to stderr, so that `./demo outputs` stays pure JSON.
EXIT_CHECK=1; EXIT_ENV=2; EXIT_USAGE=3
started=$SECONDS

say() { printf '%s\n' "$*" >&2; }
elapsed() { printf '%d:%02d' $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60)); }
phase() { say "==> [$(elapsed)] $*"; }
bad_usage() { say "error: $1. See: ./demo --help"; exit $EXIT_USAGE; }
not_fit() { say "error: $1"; shift; for line in "$@"; do say "  fix: $line"; done; exit $EXIT_ENV; }

# version_at_least HAVE WANT: compares dotted numbers
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1)" = "$2" ]; }
