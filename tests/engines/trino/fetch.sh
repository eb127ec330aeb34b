#!/usr/bin/env bash
# Download the jars of Trino's server and of its Iceberg connector with Maven, into jars/lib and jars/iceberg.
# Their digests are in jars.sha256.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf jars
for part in server:lib iceberg:iceberg; do
  mvn --quiet --batch-mode --file "${part%:*}.pom.xml" \
    org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$PWD/jars/${part#*:}"
done
