#!/usr/bin/env bash
# Run uv: the one on the PATH, else one from PyPI in .uv/.
set -euo pipefail
cd "$(dirname "$0")/.."
# As pip does: a company's own certificate authority is known to the system, and not to uv.
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}"
if command -v uv >/dev/null && uv --version >/dev/null 2>&1; then
  exec uv "$@"
fi
if [ ! -x .uv/bin/uv ]; then
  python3 -m venv .uv && .uv/bin/pip install --quiet --disable-pip-version-check uv >&2
fi
exec .uv/bin/uv "$@"
