"""Read stack files and environment files of a project without loading models, which most commands do not need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lakewright.validation.documents import as_mapping, as_text

DEFAULT_PROJECT_ID = "00000000-0000-0000-0000-000000000000"
"""Id of the project that a Lakekeeper creates for itself, and that tenants with `shared` use by default."""
SPEC_KEY = "lakewright:tenant"
"""Key of a tenant's spec in `config` of a stack file."""
SPEC_SECTIONS = ("config", SPEC_KEY)
"""Keys that lead to the spec in a stack file."""
_SCHEMA_FOLDERS = ("schema", "docs/schema")
"""Folders of a project that may have the schema: of a user's project, and of Lakewright's repository."""
_EARLIER_SPELLING = "lakewright:config:tenant"


def read_text(file: Path) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def raw_spec(file: Path) -> Mapping[str, Any]:
    """Return the spec in a stack file with the values that it extends, unchecked; empty if there is none.

    Values of files that cannot be read are left out, and `extends` then remains in the spec.
    """
    body = _read_document(file)
    spec = as_mapping(as_mapping(body.get("config")).get(spec_key(body)))
    if "extends" not in spec:
        return spec
    from lakewright.project_files.shared_values import find_folder, merge_defaults  # noqa: PLC0415 - few specs extend
    from lakewright.validation.problems import SpecError  # noqa: PLC0415

    try:
        return merge_defaults(spec, find_folder(file), str(file)).document
    except SpecError:
        return spec


def find_project_id(spec: Mapping[str, Any]) -> str | None:
    """Return the id of a tenant's Lakekeeper project from its spec as written; None if the spec has no name."""
    default = DEFAULT_PROJECT_ID if shares_project(spec) else as_text(spec.get("name"))
    return as_text(as_mapping(spec.get("project")).get("id")) or default


def shares_project(spec: Mapping[str, Any]) -> bool:
    """Return whether a spec as written shares its Lakekeeper project with other tenants."""
    return as_mapping(spec.get("project")).get("shared") is True


def spec_key(body: Mapping[str, Any]) -> str:
    """Return the key of the spec in `config` of a stack file, which has two spellings."""
    config = as_mapping(body.get("config"))
    return _EARLIER_SPELLING if not config.get(SPEC_KEY) and config.get(_EARLIER_SPELLING) else SPEC_KEY


def build_schema_comment(root: Path, folder: Path) -> str:
    """Return the first line of a stack file, which names its schema for editors; empty if the project has no schema.

    Args:
        root: Folder of the project.
        folder: Folder of the stack file.
    """
    for name in _SCHEMA_FOLDERS:
        schema = root / name / "tenant.schema.json"
        if schema.is_file():
            path = Path(os.path.relpath(schema, folder.resolve())).as_posix()
            return f"# yaml-language-server: $schema={path}\n"
    return ""


def environment_file(root: Path, name: str) -> Path:
    """Return the file of an environment of a project."""
    return root / "environments" / f"{name}.yaml"


def raw_environment(root: Path, name: str) -> Mapping[str, Any]:
    """Return an environment of a project, unchecked; empty if it cannot be read."""
    return _read_document(environment_file(root, name))


def _read_document(file: Path) -> Mapping[str, Any]:
    from lakewright_engine.project.yaml_text import load_yaml  # noqa: PLC0415 - `--help` reads no file
    from yaml import YAMLError  # noqa: PLC0415

    try:
        return as_mapping(load_yaml(read_text(file)))
    except YAMLError:
        return {}
