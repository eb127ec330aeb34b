#!/usr/bin/env bash
# Hand over the blocks of an executor before Kubernetes stops it: SIGPWR starts it in Spark's executor, process 1.
# The pod's `terminationGracePeriodSeconds` limits the time.
set -euo pipefail
kill -s PWR 1
while kill -0 1 2>/dev/null; do
  sleep 1
done
