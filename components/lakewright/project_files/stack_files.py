"""Read stack files and environment files of a project without loading models, which most commands do not need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.validation.documents import as_mapping, as_text

if TYPE_CHECKING:
    from yaml import YAMLError

    from lakewright.validation.problems import SpecError

DEFAULT_PROJECT_ID = "00000000-0000-0000-0000-000000000000"
"""Id of the project that a Lakekeeper creates for itself, and that tenants with `shared` use by default."""
SPEC_KEY = "lakewright:tenant"
"""Key of a tenant's spec in `config` of a stack file."""
SPEC_SECTIONS = ("config", SPEC_KEY)
"""Keys that lead to the spec in a stack file."""
_SCHEMA_FOLDERS = ("schema", "docs/schema")
"""Folders of a project that may have the schema: of a user's project, and of Lakewright's repository."""
_EARLIER_SPELLING = "lakewright:config:tenant"


@dataclass(frozen=True)
class UncheckedSpec:
    """A spec as its stack file has it, with the values that it extends."""

    document: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The spec, unchecked; empty if there is none. If its values cannot be extended, it still has `extends`."""
    error: SpecError | None = None
    """Why the stack file, or a file that the spec extends, cannot be read; None if all can be read."""


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
    return read_unchecked_spec(file).document


def read_unchecked_spec(file: Path) -> UncheckedSpec:
    """Return the spec in a stack file with the values that it extends, and why a file of it cannot be read."""
    from lakewright_engine.project.yaml_text import load_yaml  # noqa: PLC0415 - `--help` reads no file
    from yaml import YAMLError  # noqa: PLC0415

    try:
        body: object = load_yaml(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        return UncheckedSpec(error=_explain_unreadable(file, error))
    config = as_mapping(body).get("config")
    key = spec_key(as_mapping(body))
    spec = as_mapping(config).get(key)
    for path, value in (("", body), ("config", config), (f"config.{key}", spec)):
        if value is not None and not isinstance(value, Mapping):
            return UncheckedSpec(error=_explain_type(file, path, value))
    document = as_mapping(spec)
    if "extends" not in document:
        return UncheckedSpec(document)
    from lakewright.project_files.shared_values import find_folder, merge_defaults  # noqa: PLC0415 - few specs extend
    from lakewright.validation.problems import SpecError  # noqa: PLC0415

    try:
        return UncheckedSpec(merge_defaults(document, find_folder(file), str(file)).document)
    except SpecError as error:
        return UncheckedSpec(document, error)


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


def _explain_unreadable(file: Path, error: OSError | UnicodeDecodeError | YAMLError) -> SpecError:
    from lakewright.validation.positions import make_syntax_problem  # noqa: PLC0415 - few files cannot be read
    from lakewright.validation.problems import Problem, SpecError  # noqa: PLC0415

    if isinstance(error, OSError):
        return SpecError(str(file), [Problem("", f"cannot be read: {error.strerror}")])
    return SpecError(str(file), [make_syntax_problem(file, error)])


def _explain_type(file: Path, path: str, value: object) -> SpecError:
    from lakewright.validation.problems import Problem, SpecError  # noqa: PLC0415 - few files have another type

    return SpecError(str(file), [Problem(path, "expected a mapping", f"a {type(value).__name__}")])
