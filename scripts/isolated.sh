#!/usr/bin/env bash
# Run a command in its own network, mounts and process ids: isolated.sh COMMAND..; nothing of it remains. It needs root.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: isolated.sh COMMAND.." >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "isolated.sh makes networks of its own for pods: run it as root" >&2; exit 1; }
exec unshare --net --mount --pid --fork --kill-child --mount-proc bash -c '
  set -e
  ip link set lo up
  mkdir -p /run/netns
  mount -t tmpfs tmpfs /run/netns
  exec "$@"' isolated "$@"
