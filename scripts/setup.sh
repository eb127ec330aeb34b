#!/usr/bin/env bash
# Set up a checkout: Python's version, uv, the locked .venv with the four packages, Java, the Iceberg jars.
# `setup.sh user` installs what commands and sandbox need: no Java, no Spark and no development tools.
# Needs `make` and Python 3.11+; takes Java and python3-venv through apt where that is allowed.
set -euo pipefail
cd "$(dirname "$0")/.."

source scripts/apt.sh

audience="${1:-developer}"

java_version() { java -version 2>&1 | sed -nE '1s/.*version "([0-9]+).*/\1/p'; }
new_java() { command -v java >/dev/null && [ "$(java_version)" -ge 17 ] 2>/dev/null; }

command -v python3 >/dev/null || fail "Python 3.11 or newer is needed: install python3."
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "Python 3.11 or newer is needed, found $(python3 -V): put a newer python3 first on the PATH."

if [ "$audience" = developer ] && ! new_java; then
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
uv_pip() { scripts/uv.sh pip "$@" --quiet --build-constraints requirements-build.lock; }
if [ "$audience" = developer ]; then
  uv_pip sync --require-hashes requirements.lock
else
  # Packages of an earlier, whole setup remain.
  uv_pip install --require-hashes -r requirements-user.lock
fi
uv_pip install --no-deps -e components -e engine -e spark -e sandbox
[ "$audience" != developer ] || .venv/bin/lakewright-spark jars
