"""Manifests as files: where each object is rendered to, and how it is written.

Names and layout are those of the real provider: `0-crd/` for custom resource definitions, `1-manifest/` for the rest,
`<apiVersion>-<kind>-<namespace or default>-<name>.yaml`, block style with sorted keys, readable by the owner only.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import yaml

from lakewright_sandbox.providers.errors import ProviderError

Manifest = dict[str, Any]


def path_of(manifest: Manifest, directory: Path) -> Path:
    """The file that an object is rendered to."""
    metadata = manifest["metadata"]
    version = manifest["apiVersion"].replace("/", "_").replace(":", "_")
    namespace = metadata.get("namespace") or "default"
    file = f"{version}-{manifest['kind'].lower()}-{namespace}-{metadata['name']}.yaml"
    is_definition = manifest["kind"] == "CustomResourceDefinition" and version.startswith("apiextensions.k8s.io_")
    return directory / ("0-crd" if is_definition else "1-manifest") / file


def text_of(manifest: Manifest) -> str:
    """The object as YAML."""
    return yaml.safe_dump(manifest, default_flow_style=False, sort_keys=True, allow_unicode=True, width=2**31)


def write(manifest: Manifest, directory: Path) -> Path:
    """Render the object; a reader sees the old file or the new one, never half of it."""
    target = path_of(manifest, directory)
    try:
        for folder in ("0-crd", "1-manifest"):
            (directory / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text_of(manifest))
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ProviderError(f"the manifest {target} could not be written: {error.strerror or error}") from error
    return target


def remove(path: Path) -> None:
    """Remove a rendered file; one that is gone already is as good as removed."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ProviderError(f"the manifest {path} could not be removed: {error.strerror or error}") from error


def load(path: Path) -> Manifest | None:
    """The object in a rendered file, or None where there is no such file."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, yaml.YAMLError) as error:
        raise ProviderError(f"the manifest {path} could not be read: {error}") from error
