"""Manifests as files: their paths and their format.

Names and layout equal the real provider's: `0-crd/` for custom resource definitions, `1-manifest/` for the rest,
`<apiVersion>-<kind>-<namespace or default>-<name>.yaml`, block style with sorted keys, readable by the owner only.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import yaml

from lakewright_sandbox.providers.protocol.errors import SandboxProviderError
from lakewright_sandbox.typed.json_values import is_array, is_object

Manifest = dict[str, Any]


def manifest_path(manifest: Manifest, directory: Path) -> Path:
    """Return the file that an object is rendered to."""
    metadata = manifest["metadata"]
    version = manifest["apiVersion"].replace("/", "_").replace(":", "_")
    namespace = metadata.get("namespace") or "default"
    file = f"{version}-{manifest['kind'].lower()}-{namespace}-{metadata['name']}.yaml"
    is_definition = manifest["kind"] == "CustomResourceDefinition" and version.startswith("apiextensions.k8s.io_")
    return directory / ("0-crd" if is_definition else "1-manifest") / file


def to_yaml(manifest: Manifest) -> str:
    """Return an object as YAML, quoted and ordered as the real provider's library does it."""
    return yaml.dump(
        _order(manifest),
        Dumper=_Dumper,
        default_flow_style=False,
        sort_keys=False,
        allow_unicode=True,
        width=2**31,
    )


class _Dumper(yaml.SafeDumper):
    """Quote as Go's YAML library does: double quotes where a plain string would be read as another type."""


# Strings that other YAML libraries, unlike PyYAML, read as booleans or numbers.
_AMBIGUOUS = re.compile(r"[yYnN]|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+")


def _string(dumper: Any, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif _AMBIGUOUS.fullmatch(text) or dumper.resolve(yaml.ScalarNode, text, (True, False)) != _STRING_TAG:
        style = '"'
    return dumper.represent_scalar(_STRING_TAG, text, style=style)


_STRING_TAG = "tag:yaml.org,2002:str"
_Dumper.add_representer(str, _string)


def _order(value: Any) -> Any:
    if is_object(value):
        return {key: _order(value[key]) for key in sorted(value, key=_natural)}
    if is_array(value):
        return [_order(item) for item in value]
    return value


def _natural(key: str) -> list[tuple[int, int, str]]:
    """Return a key's sort position: punctuation, then numbers by value, then letters, as in Go's YAML library."""
    parts = re.findall(r"[0-9]+|.", key, flags=re.DOTALL)
    return [(1, 0, p) if p.isalpha() else (0, int(p), p) if p.isdecimal() else (0, 0, p) for p in parts]


def write(manifest: Manifest, directory: Path) -> Path:
    """Render an object to its file, replacing it in one step. Return the file."""
    target = manifest_path(manifest, directory)
    try:
        for folder in ("0-crd", "1-manifest"):
            (directory / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(to_yaml(manifest))
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise SandboxProviderError(f"the manifest {target} could not be written: {error.strerror or error}") from error
    return target


def remove(path: Path) -> None:
    """Remove a rendered file if it exists."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise SandboxProviderError(f"the manifest {path} could not be removed: {error.strerror or error}") from error


def load(path: Path) -> Manifest | None:
    """Return the object in a rendered file, None if there is no such file."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, yaml.YAMLError) as error:
        raise SandboxProviderError(f"the manifest {path} could not be read: {error}") from error
