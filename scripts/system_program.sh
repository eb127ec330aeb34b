#!/usr/bin/env bash
# Make sure that a program of the system is installed, which the tests start: system_program.sh PROGRAM DEBIAN_PACKAGE
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/apt.sh
[ $# -eq 2 ] || { echo "usage: system_program.sh PROGRAM DEBIAN_PACKAGE" >&2; exit 2; }

# Debian has servers in sbin, which is not on every user's PATH.
PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null || apt_install "$2" ||
  fail "$1 is needed: put one on the PATH (on Debian and Ubuntu: apt install $2)."
