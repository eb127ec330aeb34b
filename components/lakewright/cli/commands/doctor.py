"""`lakewright doctor`: what is there, what is missing, and how to mend it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.cli.options import HERE, Directory, load_project

if TYPE_CHECKING:
    from lakewright.doctor import Finding

MARKS = {"ok": "[green]ok[/]", "optional": "[yellow]optional[/]", "missing": "[red]missing[/]"}


def doctor(
    stack: Annotated[
        str | None, typer.Option("--stack", "-s", help="Also ask the Lakekeeper, S3 and cluster of this tenant.")
    ] = None,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what is there, what is missing, and how to mend it. Exit code 1 if something is missing."""
    from lakewright.doctor import look_at_machine  # noqa: PLC0415 - `--help` needs none of it

    findings = look_at_machine()
    if stack is not None:
        findings += _of_tenant(stack, directory)
    if as_json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        _show(findings, asked_of_tenant=stack is not None)
    if any(finding.state == "missing" for finding in findings):
        raise typer.Exit(1)


def _of_tenant(stack: str, directory: Path) -> list[Finding]:
    from lakewright.doctor import look_at_surroundings  # noqa: PLC0415
    from lakewright.environment.environment import Environment  # noqa: PLC0415
    from lakewright.environment.stack_config import rule_check  # noqa: PLC0415
    from lakewright.names.object_names import namespace_name  # noqa: PLC0415
    from lakewright.spec import ExistingStorage, S3Storage, SpecError, read_stack_file  # noqa: PLC0415

    project = load_project(directory)
    file = project.stack_file(stack)
    spec = read_stack_file(file)
    environment = Environment.load(project.root / "environments" / f"{spec.environment}.yaml")
    # Stores are asked below, with the secrets that the spec refers to.
    if problems := [*rule_check(environment, spec.environment).problems(spec.model_dump())]:
        raise SpecError(str(file), problems)
    given = [storage.bucket for storage in spec.storage.values() if isinstance(storage, ExistingStorage)]
    stores = [storage for storage in spec.storage.values() if isinstance(storage, S3Storage)]
    return look_at_surroundings(environment, given, stores, project_id=spec.name, namespace=namespace_name(spec.name))


def _show(findings: list[Finding], *, asked_of_tenant: bool) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table("what", "state", "found", "how to mend it")
    for finding in findings:
        table.add_row(finding.subject, MARKS[finding.state], escape(finding.found), escape(finding.mend))
    console = Console()
    console.print(table)
    if not asked_of_tenant:
        console.print("Name a tenant with --stack to ask its Lakekeeper, S3 and cluster too.")
