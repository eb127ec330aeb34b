"""`lakewright spec explain`: what a field of the spec means, and which value a stack has in effect."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright.cli import completions
from lakewright.cli.options import HERE, Directory, load_project

if TYPE_CHECKING:
    from pathlib import Path

    from lakewright.explanation.effective import EffectiveValue
    from lakewright.explanation.fields import FieldDocumentation

_NAME_WIDTH = 12


def explain(
    field: Annotated[
        str | None,
        typer.Argument(
            metavar="[FIELD.PATH]",
            help="A field, such as `warehouses.deletion`.",
            autocompletion=completions.complete_field,
        ),
    ] = None,
    *,
    stack: Annotated[
        str | None,
        typer.Option(
            "--stack",
            "-s",
            help="Print the values of this stack, and where each comes from.",
            autocompletion=completions.complete_stack,
        ),
    ] = None,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain a field of the spec; with --stack print all values of a stack, and where each comes from.

    Values come from the spec, files that it extends, its environment, the stack's settings and defaults; names of
    roles, prefixes and namespaces are derived.

    Example: lakewright spec explain warehouses.deletion
    """
    if stack is None:
        documentation = _documentation(field or "")
        if as_json:
            _print_json({"version": 1, "fields": [item.to_json() for item in documentation]})
            return
        print("\n\n".join("\n".join(_describe(item)) for item in documentation))
        return
    values = _values(stack, directory)
    if field:
        values = [value for value in values if _is_below(value.path, field)]
        if not values:
            _documentation(field)  # refuses an unknown field
    if as_json:
        _print_json({"version": 1, "stack": stack, "values": [value.to_json() for value in values]})
        return
    from lakewright.terminal.text_lines import format_table  # noqa: PLC0415 - `--help` prints no table

    rows = [
        (value.path, _text(value.value), value.source.value + (f" ({value.place})" if value.place else ""))
        for value in values
    ]
    print("\n".join(format_table(("FIELD", "VALUE", "FROM"), rows)))


def _is_below(path: str, field: str) -> bool:
    """Return whether a path is a field or in it. Positions in lists may be left out."""
    if f"{path}.".startswith(f"{field}."):
        return True
    names = ".".join(step for step in path.split(".") if not step.isdigit())
    return f"{names}.".startswith(f"{field}.")


def _documentation(path: str) -> list[FieldDocumentation]:
    from lakewright.explanation.fields import example_spec, explain_field  # noqa: PLC0415 - `--help` needs no models
    from lakewright.spec import TenantSpec  # noqa: PLC0415

    return explain_field(TenantSpec.model_json_schema(), path, example_spec())


def _values(stack: str, directory: Path) -> list[EffectiveValue]:
    """Return the values of a stack. Raise SpecError if its spec or environment is invalid."""
    from lakewright.environment.loading import platform_reader  # noqa: PLC0415
    from lakewright.environment.stack_config import read_stack_config  # noqa: PLC0415
    from lakewright.explanation.effective import effective_values  # noqa: PLC0415
    from lakewright.project_files.shared_values import find_place, locate_spec_problems, read_merged_spec  # noqa: PLC0415
    from lakewright.project_files.stack_files import SPEC_KEY, SPEC_SECTIONS, raw_spec  # noqa: PLC0415

    project = load_project(directory)
    document = raw_spec(project.stack_file(stack))
    region = project.stack_config(stack).get("aws:region")
    with locate_spec_problems(project.stack_file(stack), *SPEC_SECTIONS):
        spec, environment = read_stack_config(
            document or None,
            source=f"stack {stack}, {SPEC_KEY}",
            environments=project.root / "environments",
            environ=os.environ,
            region=region,
            read_platform=platform_reader(project),
        )
    merged = read_merged_spec(project.stack_file(stack), *SPEC_SECTIONS)
    return effective_values(
        document, spec, environment, region=region, find_shared=lambda path: find_place(merged, path)
    )


def _describe(field: FieldDocumentation) -> list[str]:
    title = field.path or "The spec of a tenant"
    lines = [f"{title} ({field.variant})" if field.variant else title]
    if field.description:
        lines += [f"  {field.description}", ""]
    facts = {
        "type": field.type,
        "required": "yes" if field.is_required else "",
        "default": _text(field.default) if field.default is not None else "",
        "allowed": ", ".join(_text(value) for value in field.allowed),
        "limits": ", ".join(field.limits),
        "example": _text(field.example) if field.example is not None else "",
    }
    lines += [f"  {name:{_NAME_WIDTH}}{value}" for name, value in facts.items() if value]
    if field.fields:
        from lakewright.terminal.text_lines import format_table  # noqa: PLC0415

        rows = [(item.name, item.type, item.description) for item in field.fields]
        lines += ["", *format_table(("FIELD", "TYPE", ""), rows, indent="  ")]
    return lines


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))
