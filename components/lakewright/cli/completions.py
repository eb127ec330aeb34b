"""Completion in shells: stacks, labels, environments, fields of specs, URNs. It reads files only, and never fails."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakewright_engine.project.project import PulumiProject

_MOST_FILES = 200
"""Number of stack files that are read for their labels: a shell waits for them."""


def complete_stack(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the stacks with a file whose names begin with a text."""
    return [name for name in _stack_files(ctx) if name.startswith(incomplete)]


def complete_label(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the labels `NAME=VALUE` of specs that begin with a text."""
    from lakewright.project_files.stack_files import raw_spec  # noqa: PLC0415 - a command does not complete
    from lakewright.validation.documents import as_mapping  # noqa: PLC0415

    labels_found: set[str] = set()
    for file in [*_stack_files(ctx).values()][:_MOST_FILES]:
        labels = as_mapping(raw_spec(file).get("labels"))
        labels_found |= {f"{name}={value}" for name, value in labels.items()}
    return sorted(label for label in labels_found if label.startswith(incomplete))


def complete_environment(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the environments of the project whose names begin with a text."""
    with suppress(Exception):  # a shell shows no error of a completion
        files = (_load_project(ctx).root / "environments").glob("*.yaml")
        return sorted(file.stem for file in files if file.stem.startswith(incomplete))
    return []


def complete_field(incomplete: str) -> list[str]:
    """Return the fields of specs that begin with a text, a level at a time: `warehouses.` has `warehouses.name`."""
    from lakewright.explanation.fields import list_field_names  # noqa: PLC0415 - a command does not complete
    from lakewright.spec import TenantSpec  # noqa: PLC0415

    parent, dot, start = incomplete.rpartition(".")
    names = list_field_names(TenantSpec.model_json_schema(), parent)
    return [f"{parent}{dot}{name}" for name in names if name.startswith(start)]


def complete_urn(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the URNs in the state of the command's stack that begin with a text. No state in a bucket is read."""
    with suppress(Exception):  # a shell shows no error of a completion
        return [urn for urn in _list_urns(ctx) if urn.startswith(incomplete)]
    return []


def _list_urns(ctx: typer.Context) -> list[str]:
    from lakewright.cli.default_stack import STACK_VARIABLE, read_selected_stack  # noqa: PLC0415

    project = _load_project(ctx)
    if not project.state_url.startswith("file://"):
        return []
    stack = ctx.params.get("stack") or os.environ.get(STACK_VARIABLE) or read_selected_stack(project)
    deployment: dict[str, Any] = project.backend().export(project.name, stack)["deployment"]
    resources: list[dict[str, Any]] = deployment.get("resources") or []
    return [resource["urn"] for resource in resources]


def _load_project(ctx: typer.Context) -> PulumiProject:
    from lakewright_engine.project.project import PulumiProject  # noqa: PLC0415

    return PulumiProject.load(ctx.params.get("directory") or os.curdir)


def _stack_files(ctx: typer.Context) -> dict[str, Path]:
    """Return the stack files of the project by stack; none outside a project."""
    with suppress(Exception):  # a shell shows no error of a completion
        return dict(_read_stack_files(ctx))
    return {}


def _read_stack_files(ctx: typer.Context) -> Iterator[tuple[str, Path]]:
    from lakewright.fleet.selection import stack_files  # noqa: PLC0415

    yield from stack_files(_load_project(ctx)).items()
