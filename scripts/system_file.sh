#!/usr/bin/env bash
# Make sure that a file of the system exists, such as a module that the tests load: system_file.sh FILE DEBIAN_PACKAGE
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/apt.sh
[ $# -eq 2 ] || { echo "usage: system_file.sh FILE DEBIAN_PACKAGE" >&2; exit 2; }

[ -e "$1" ] || apt_install "$2" || fail "$1 is needed (on Debian and Ubuntu: apt install $2)."
