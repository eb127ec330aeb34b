#!/usr/bin/env bash
# Set up a checkout: Python's version, Java, uv, the locked .venv with the four packages, the Iceberg jars.
# Needs `make` and Python 3.11+; takes Java and python3-venv through apt where that is allowed.
set -euo pipefail
cd "$(dirname "$0")/.."

source scripts/apt.sh

java_version() { java -version 2>&1 | sed -nE '1s/.*version "([0-9]+).*/\1/p'; }
new_java() { command -v java >/dev/null && [ "$(java_version)" -ge 17 ] 2>/dev/null; }

command -v python3 >/dev/null || fail "Python 3.11 or newer is needed: install python3."
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "Python 3.11 or newer is needed, found $(python3 -V): put a newer python3 first on the PATH."

if ! new_java; then
  # The default is Java 11 on older releases, which have 17 under its own name. An install makes the newest the `java`.
  apt_install default-jre-headless || fail "Java 17 or newer is needed: install one (on Debian and Ubuntu: apt install openjdk-17-jre-headless)."
  new_java || apt_install openjdk-17-jre-headless || true
  new_java || fail "Java 17 or newer is needed, found $(java_version): put a newer java first on the PATH."
fi

status=0
scripts/uv.sh --version >/dev/null || status=$?
if [ "$status" -eq 3 ]; then
  # Debian's python3 comes without ensurepip; the package that has it is named after the version.
  rm -rf .uv
  apt_install "$(python3 -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')" ||
    fail "Python's venv module is needed: install it (on Debian and Ubuntu: apt install python3-venv)."
  status=0
  scripts/uv.sh --version >/dev/null || status=$?
fi
[ "$status" -eq 0 ] || fail "uv is missing: see the reason above."

say "installing the locked packages into .venv"
[ -x .venv/bin/python ] || scripts/uv.sh venv --quiet --python "$(python3 -c 'import sys; print(sys.executable)')" .venv
export VIRTUAL_ENV="$PWD/.venv"
# Two packages come as source only, and our own are built too: their build back ends are pinned as well.
scripts/uv.sh pip sync --quiet --require-hashes --build-constraints requirements-build.lock requirements.lock
scripts/uv.sh pip install --quiet --no-deps --build-constraints requirements-build.lock -e components -e engine -e spark -e sandbox
.venv/bin/lakewright-spark jars
