"""Writes the pages of docs/reference/ that list fields: specs, environments, platforms and table policies. `make docs`.

Fields, texts and limits are as `lakewright spec explain` prints them, from the JSON Schemas of the models.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lakewright.environment.environment import Environment
from lakewright.explanation.fields import FieldDocumentation, explain_field
from lakewright.platform_stack.settings.platform import PlatformSpec
from lakewright.spec.tenant import TenantSpec
from lakewright_spark.policies.model import TablePolicies

PAGES = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTICE = "<!-- Written by scripts/field_pages.py (`make docs`): change the models instead. -->"


@dataclass(frozen=True)
class FieldPage:
    """A page of fields."""

    title: str
    text: str
    schema: Mapping[str, Any]


def build_pages() -> dict[str, str]:
    """Return the text of each page by file name."""
    pages = {
        "spec.md": FieldPage(
            "What may a tenant's spec hold?",
            "A spec is the value of `lakewright:tenant` in `tenants/Pulumi.TENANT.yaml`. Unknown fields are errors."
            " `lakewright spec explain FIELD` prints the same, with an example and, for a stack, the value in effect."
            " `lakewright spec schema` prints the JSON Schema for editors.",
            TenantSpec.model_json_schema(),
        ),
        "environment.md": FieldPage(
            "What may an environment hold?",
            "`environments/NAME.yaml` has what many tenants share: the catalog, identities and defaults. Secrets are"
            " [references](../concepts/what-specs-may-name.md), never values."
            " `lakewright spec schema --environment` prints the JSON Schema.",
            Environment.model_json_schema(),
        ),
        "platform-settings.md": FieldPage(
            "Which settings does a platform stack have?",
            "The settings of [Lakekeeper on Kubernetes](../guides/platform.md), in stack files of the platform project."
            " `lakewright spec schema --platform` prints the JSON Schema.",
            PlatformSpec.model_json_schema(),
        ),
        "policies.md": FieldPage(
            "Which policies may tables have?",
            "A policy says how [maintenance](../guides/maintenance.md) treats a table. It is in `policies` of the spec,"
            " by patterns of names, or in the table's property `lakewright.policy.NAME` as JSON. The property has"
            " precedence.",
            TablePolicies.model_json_schema(),
        ),
    }
    return {name: format_page(page) for name, page in pages.items()}


def format_page(page: FieldPage) -> str:
    """Return the Markdown of a page: a section for each field that has fields."""
    sections = "\n".join(_format_section(path, page.schema) for path in _list_objects(page.schema, "", ()))
    return f"# {page.title}\n\n{NOTICE}\n\n{page.text}\n\n{sections}"


def _list_objects(schema: Mapping[str, Any], path: str, outer: tuple[list[str], ...]) -> Iterator[str]:
    """Yield a path, and all paths below it whose fields have fields. A model within itself is left out."""
    yield path
    names = _list_names(explain_field(schema, path))
    for name in names:
        child = f"{path}.{name}".lstrip(".")
        inner = _list_names(explain_field(schema, child))
        if inner and inner not in (*outer, names):
            yield from _list_objects(schema, child, (*outer, names))


def _list_names(documentation: list[FieldDocumentation]) -> list[str]:
    return list(dict.fromkeys(field.name for item in documentation for field in item.fields))


def _format_section(path: str, schema: Mapping[str, Any]) -> str:
    documentation = explain_field(schema, path)
    text = " ".join(dict.fromkeys(item.description for item in documentation if item.description))
    lines = [f"## `{path}`" if path else "## All fields", "", text, ""] if path else ["## All fields", ""]
    lines += ["| field | type | default | meaning |", "|---|---|---|---|"]
    for name in _list_names(documentation):
        lines.append(_format_row(name, explain_field(schema, f"{path}.{name}".lstrip("."))))
    return "\n".join(lines) + "\n"


def _format_row(name: str, documentation: list[FieldDocumentation]) -> str:
    """Return a row. A field that depends on a choice has the texts of its variants."""
    types = dict.fromkeys(item.type for item in documentation)
    defaults = dict.fromkeys(_format_default(item) for item in documentation)
    if len({(item.description, item.limits) for item in documentation}) == 1:
        values = tuple(dict.fromkeys(value for item in documentation for value in item.allowed))
        meaning = _format_meaning(replace(documentation[0], allowed=values))
    else:
        # One text for several choices is written once, after their names.
        texts: dict[str, list[str]] = {}
        for item in documentation:
            texts.setdefault(_format_meaning(item), []).append(f"`{item.variant}`")
        meaning = " ".join(f"{', '.join(choices)}: {text}" for text, choices in texts.items())
    cells = [f"`{name}`", " or ".join(types), " or ".join(defaults), meaning]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _format_default(field: FieldDocumentation) -> str:
    if field.is_required:
        return "required"
    return "none" if field.default is None else f"`{json.dumps(field.default)}`"


def _format_meaning(field: FieldDocumentation) -> str:
    allowed = [f"Values: {', '.join(f'`{value}`' for value in field.allowed)}."] if field.allowed else []
    limits = [f"Limits: {', '.join(_format_limit(limit) for limit in field.limits)}."] if field.limits else []
    return " ".join(part for part in (field.description, *allowed, *limits) if part)


def _format_limit(limit: str) -> str:
    kind, _, value = limit.partition("matches ")
    return f"matches `{value}`" if value else kind


def main() -> None:
    """Write the pages."""
    for name, text in build_pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
