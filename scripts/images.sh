#!/usr/bin/env bash
# Build an image: [IMAGE=spark] PYTHON_IMAGE=NAME@sha256:... JAVA_IMAGE=NAME@sha256:... [TAG=NAME] scripts/images.sh
# STORAGES="adls gcs" adds the jars for tables on Azure and Google.
# IMAGE=lakewright needs PULUMI_IMAGE, AWS_PLUGIN_SHA256 and KUBERNETES_PLUGIN_SHA256 instead of JAVA_IMAGE.
# With syft on the PATH, also write the image's bill of materials (SPDX) to dist/.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'images: %s\n' "$*" >&2; exit 2; }

image=${IMAGE:-spark}
case "$image" in
  spark)
    name=lakewright-spark file=images/Containerfile bases=(PYTHON_IMAGE JAVA_IMAGE) checksums=() page=docs/guides/images.md
    release=$(sed -nE 's/^pyspark==([0-9.]+).*/\1/p' images/requirements.lock)
    setting="kubernetes.images.spark of the environment" ;;
  lakewright)
    name=lakewright file=images/lakewright.Containerfile bases=(PYTHON_IMAGE PULUMI_IMAGE) page=docs/guides/drift-in-kubernetes.md
    checksums=(AWS_PLUGIN_SHA256 KUBERNETES_PLUGIN_SHA256)
    release=$(sed -nE 's/^version = "([0-9.]+)".*/\1/p' components/pyproject.toml)
    setting="drift_check.image of the platform" ;;
  *) fail "IMAGE: expected spark or lakewright, found '$image'." ;;
esac

options=()
for argument in "${bases[@]}"; do
  value=${!argument:-}
  [[ $value =~ ^[^@[:space:]]+@sha256:[0-9a-f]{64}$ ]] ||
    fail "$argument: expected an image by digest, NAME@sha256:..., found '${value}'. See $page for how to look one up."
  options+=(--build-arg "$argument=$value")
done
for argument in "${checksums[@]}"; do
  value=${!argument:-}
  [[ $value =~ ^[0-9a-f]{64}$ ]] ||
    fail "$argument: expected 64 hexadecimal digits, found '${value}'. See $page for where they are."
  options+=(--build-arg "$argument=$value")
done
if [ "$image" = spark ]; then
  for storage in ${STORAGES:-}; do
    [[ $storage =~ ^(adls|gcs)$ ]] || fail "STORAGES: expected adls, gcs or both, found '$storage'."
  done
  options+=(--build-arg "STORAGES=${STORAGES:-}")
fi
tag=${TAG:-$name:$release}

for builder in docker podman buildah; do
  if command -v "$builder" >/dev/null; then break; fi
  builder=
done
[ -n "$builder" ] || fail "expected docker, podman or buildah on the PATH, found none of them."

# Docker finds the ignore file by its name.
[ "$builder" = docker ] || options=(--format docker --ignorefile "$file.dockerignore" "${options[@]}")
"$builder" build --file "$file" "${options[@]}" --tag "$tag" .
printf 'images: built %s. Push it, and name it by digest in %s.\n' "$tag" "$setting"

if command -v syft >/dev/null; then
  mkdir -p dist
  syft "$tag" --output "spdx-json=dist/$name.spdx.json"
  printf 'images: wrote dist/%s.spdx.json\n' "$name"
else
  printf 'images: syft is not on the PATH, so no bill of materials was written.\n'
fi
