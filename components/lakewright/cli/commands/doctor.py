"""`lakewright doctor`: check the machine and the services of a tenant."""

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
        str | None, typer.Option("--stack", "-s", help="Also check Lakekeeper, S3 and the cluster of this tenant.")
    ] = None,
    directory: Directory = HERE,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check what is installed and reachable, and say how to fix what is missing.

    Exit code 1 if something is missing.

    Example: lakewright doctor --stack acme
    """
    from lakewright.doctor import check_machine  # noqa: PLC0415 - `--help` needs none of it

    findings = check_machine()
    if stack is not None:
        findings += _check_tenant(stack, directory)
    if as_json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        _print_table(findings, includes_tenant=stack is not None)
    if any(finding.state == "missing" for finding in findings):
        raise typer.Exit(1)


def _check_tenant(stack: str, directory: Path) -> list[Finding]:
    from lakewright.cli.engines.environment_loading import load_environment  # noqa: PLC0415
    from lakewright.doctor import Finding, check_services  # noqa: PLC0415
    from lakewright.environment.stack_config import rule_check  # noqa: PLC0415
    from lakewright.names.object_names import namespace_name  # noqa: PLC0415
    from lakewright.spec import SpecError, read_stack_file  # noqa: PLC0415

    project = load_project(directory)
    file = project.stack_file(stack)
    spec = read_stack_file(file)
    environment = load_environment(project, spec.environment)
    # Stores get the secrets that the spec refers to, so the environment must allow them first.
    if problems := [*rule_check(environment, spec.environment).problems(spec.model_dump())]:
        raise SpecError(str(file), problems)
    buckets = [probe for storage in spec.storage.values() if (probe := storage.probe())]
    kept = [
        Finding(f"deletion in {storage.bucket}", "optional", "`may_delete: false`: nothing is purged or compacted")
        for storage in spec.storage.values()
        if not storage.allows_deletion
    ]
    return kept + check_services(environment, buckets, project_id=spec.project_id, namespace=namespace_name(spec.name))


def _print_table(findings: list[Finding], *, includes_tenant: bool) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table("check", "state", "found", "how to fix it")
    for finding in findings:
        table.add_row(finding.subject, MARKS[finding.state], escape(finding.found), escape(finding.fix))
    console = Console()
    console.print(table)
    if not includes_tenant:
        console.print("Name a tenant with --stack to check its Lakekeeper, S3 and cluster too.")
