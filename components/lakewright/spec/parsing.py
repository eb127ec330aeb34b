"""Parse a tenant's spec from the value of `lakewright:tenant`, or from a stack file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import ValidationError

from lakewright.project_files.shared_values import EXTENDS, find_folder, locate_spec_problems, merge_defaults
from lakewright.project_files.stack_files import SPEC_KEY, SPEC_SECTIONS
from lakewright.spec.tenant import TenantSpec
from lakewright.validation.documents import as_mapping
from lakewright.validation.positions import make_syntax_problem
from lakewright.validation.problems import Problem, SpecError, list_problems
from lakewright.validation.yaml_text import load_yaml


def parse_spec(raw: Any, source: str) -> TenantSpec:
    """Return the spec of a document.

    Args:
        raw: The document.
        source: Where it was read, for messages.

    Raises:
        SpecError: With all problems.
    """
    if not isinstance(raw, dict):
        description = "nothing" if raw is None else f"a {type(raw).__name__}"
        raise SpecError(
            source, [Problem("", "expected a mapping with version, name, storage, warehouses, ...", description)]
        )
    if EXTENDS in raw:
        expected = "expected the spec with its inherited values, as `merge_defaults` of project_files returns it"
        raise SpecError(source, [Problem(EXTENDS, expected)])
    try:
        return TenantSpec.model_validate(raw)
    except ValidationError as error:
        raise SpecError(source, list_problems(error, cast(dict[str, Any], raw))) from None


def read_stack_file(path: Path) -> TenantSpec:
    """Return the spec in a `Pulumi.<stack>.yaml`. Raises SpecError if the file or the spec is invalid."""
    settings = read_stack_settings(path)
    with locate_spec_problems(path, *SPEC_SECTIONS):
        return parse_spec(settings[SPEC_KEY], str(path))


def read_stack_settings(path: Path) -> dict[str, Any]:
    """Return `config` of a `Pulumi.<stack>.yaml`, which has a spec. The spec has the values that it extends.

    Raises:
        SpecError: The file, or a file that its spec extends, is invalid.
    """
    try:
        document = load_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(str(path), [Problem("", f"cannot be read: {error.strerror}")]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SpecError(str(path), [make_syntax_problem(path, error)]) from None
    config = cast(dict[str, Any], document).get("config") if isinstance(document, dict) else None
    if not isinstance(config, dict) or SPEC_KEY not in config:
        raise SpecError(str(path), [Problem("config", f"expected the key `{SPEC_KEY}` with the tenant's spec")])
    settings = cast(dict[str, Any], config)
    if EXTENDS not in as_mapping(settings[SPEC_KEY]):
        return settings
    with locate_spec_problems(path, *SPEC_SECTIONS):
        merged = merge_defaults(settings[SPEC_KEY], find_folder(path), str(path))
    return settings | {SPEC_KEY: dict(merged.document)}
