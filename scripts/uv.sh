#!/usr/bin/env bash
# Run the uv of requirements-uv.lock: one of that version on the PATH, else one in .uv/ whose hash is checked.
set -euo pipefail
cd "$(dirname "$0")/.."
# As pip does: a company's own certificate authority is known to the system, and not to uv.
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}"

version="$(sed -nE 's/^uv==([^ ]+).*/\1/p' requirements-uv.lock)"
is_pinned() { [ "$("$1" --version 2>/dev/null | cut -d' ' -f2)" = "$version" ]; }

if command -v uv >/dev/null && is_pinned uv; then
  exec uv "$@"
fi
if ! is_pinned .uv/bin/uv; then
  # Status 3 tells setup.sh that Python's venv module is what is missing.
  .uv/bin/python -m pip --version >/dev/null 2>&1 || python3 -m venv .uv >&2 || exit 3
  # No source distribution: building one would run what nobody has checked.
  if ! .uv/bin/python -m pip install --quiet --disable-pip-version-check \
    --require-hashes --only-binary :all: --no-deps -r requirements-uv.lock >&2; then
    echo "uv $version could not be installed for the reason above: set PIP_INDEX_URL to an index that has it, or put uv $version on the PATH." >&2
    exit 1
  fi
fi
exec .uv/bin/uv "$@"
