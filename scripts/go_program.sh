#!/usr/bin/env bash
# Build a program of a Go module once, and print the path of the binary: go_program.sh MODULE_DIR PACKAGE
# MODULE_DIR has go.mod and go.sum, which pin the sources by hash. The binary is kept in the user's cache, under a name
# that changes with these files, the module's own sources and the compiler's flags.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: go_program.sh MODULE_DIR PACKAGE" >&2; exit 2; }
scripts="$(cd "$(dirname "$0")" && pwd)"
cd "$1"
package="$2"

# Without optimization and symbols, the compiler needs half of the processor's time, which short runs do not win back.
flags=(-gcflags="all=-N -l -dwarf=false" -ldflags="-s -w")
key="$({ find . -type f \( -name go.mod -o -name go.sum -o -name '*.go' \) | LC_ALL=C sort | xargs sha256sum; printf '%s\n' "${flags[@]}"; } | sha256sum | cut -c1-16)"
name="$(basename "$package")"
programs="${XDG_CACHE_HOME:-$HOME/.cache}/lakewright/programs"
program="$programs/$name-$key"

if [ ! -x "$program" ]; then
  mkdir -p "$programs"
  exec 9>"$programs/.$name.lock"
  flock -n 9 || { echo "waiting for another build of $name" >&2; flock 9; }
  if [ ! -x "$program" ]; then
    echo "building $name with $("$scripts/go.sh" env GOVERSION): this takes minutes, once" >&2
    # `-mod=readonly` refuses sources whose hashes are not in go.sum.
    GOFLAGS="-mod=readonly -buildvcs=false -trimpath" "$scripts/go.sh" build "${flags[@]}" -o "$program.new" "$package" >&2
    mv "$program.new" "$program"
  fi
fi
echo "$program"
