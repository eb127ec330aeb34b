#!/usr/bin/env bash
# Make sure that etcd is there, which stores the objects of the Kubernetes API server of `make test-kubernetes`.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/apt.sh

command -v etcd >/dev/null || apt_install etcd-server ||
  fail "etcd is needed: put one on the PATH (on Debian and Ubuntu: apt install etcd-server)."
