#!/usr/bin/env bash
# Build the image of computing units and jobs: PYTHON_IMAGE=NAME@sha256:... JAVA_IMAGE=NAME@sha256:... [TAG=NAME] scripts/images.sh
# With syft on the PATH, also write the image's bill of materials (SPDX) to dist/.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'images: %s\n' "$*" >&2; exit 2; }

for name in PYTHON_IMAGE JAVA_IMAGE; do
  value=${!name:-}
  [[ $value =~ ^[^@[:space:]]+@sha256:[0-9a-f]{64}$ ]] ||
    fail "$name: expected an image by digest, NAME@sha256:..., found '${value}'. See docs/images.md for how to look one up."
done
tag=${TAG:-lakewright-spark:$(sed -nE 's/^pyspark==([0-9.]+).*/\1/p' images/requirements.lock)}

for builder in docker podman buildah; do
  if command -v "$builder" >/dev/null; then break; fi
  builder=
done
[ -n "$builder" ] || fail "expected docker, podman or buildah on the PATH, found none of them."

options=()
# Docker finds Containerfile.dockerignore by its name.
[ "$builder" = docker ] || options=(--format docker --ignorefile images/Containerfile.dockerignore)
"$builder" build "${options[@]}" --file images/Containerfile \
  --build-arg "PYTHON_IMAGE=$PYTHON_IMAGE" --build-arg "JAVA_IMAGE=$JAVA_IMAGE" --tag "$tag" .
printf 'images: built %s. Push it, and name it by digest in kubernetes.images.spark of the environment.\n' "$tag"

if command -v syft >/dev/null; then
  mkdir -p dist
  syft "$tag" --output spdx-json=dist/lakewright-spark.spdx.json
  printf 'images: wrote dist/lakewright-spark.spdx.json\n'
else
  printf 'images: syft is not on the PATH, so no bill of materials was written.\n'
fi
