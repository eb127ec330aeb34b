"""`lakewright verify`: prove from outside what the tenant's computing units can do, and what they cannot."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright.cli.options import HERE, Directory, StackName, existing_stack

if TYPE_CHECKING:
    from pathlib import Path

    from lakewright.verify.run import VerifyReport
    from lakewright.verify.session.sessions import TenantSession
    from lakewright.verify.session.subjects import ProbeIdentity

MARKS = {"allowed": "allowed", "denied": "denied", "not proven": "NOT PROVEN"}


def verify(
    stack: StackName,
    directory: Directory = HERE,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Prove a tenant's isolation with the identity of its computing units: what is allowed, and what is denied.

    Writes a table in a probe namespace of each warehouse and drops it again. Exit code 0 only if every check holds.

    Example: lakewright verify --stack acme --json
    """
    from lakewright.verify.run import run_probes  # noqa: PLC0415 - `--help` needs none of it

    report = run_probes(*session_of(stack, directory))
    if as_json:
        print(json.dumps(_to_json(stack, report), indent=2, ensure_ascii=False))
    else:
        _print_table(stack, report)
    if not report.holds:
        raise typer.Exit(1)


def session_of(stack: str, directory: Path) -> tuple[TenantSession, list[ProbeIdentity]]:
    """Return what probes need, and the identities to run them with. Raises UsageError if there was no `up`."""
    from lakewright.cli.commands.catalog_config import catalog_config  # noqa: PLC0415
    from lakewright.cli.engines.environment_loading import load_environment  # noqa: PLC0415
    from lakewright.cli.engines.stack_secrets import stack_resolver  # noqa: PLC0415
    from lakewright.spec import read_stack_file  # noqa: PLC0415
    from lakewright.verify.session.places import places_of, places_of_others  # noqa: PLC0415
    from lakewright.verify.session.sessions import TenantSession  # noqa: PLC0415
    from lakewright.verify.settings import settings_of, subjects_of  # noqa: PLC0415

    project, backend = existing_stack(directory, stack)
    spec = read_stack_file(project.stack_file(stack))
    environment = load_environment(project, spec.environment)
    session = TenantSession(
        spec,
        settings_of(spec, environment, stack_resolver(project.stack_config(stack))),
        catalog_config(stack, directory),
        places_of(backend, project.name, stack),
        places_of_others(backend, project.name, stack),
    )
    return session, subjects_of(spec, environment)


def _to_json(stack: str, report: VerifyReport) -> dict[str, Any]:
    return {
        "stack": stack,
        "holds": report.holds,
        "failed_probes": report.failed_probes,
        "checks": [{**asdict(check), "holds": check.holds} for check in report.checks],
        "notes": report.notes,
    }


def _print_table(stack: str, report: VerifyReport) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table("probe", "identity", "warehouse", "attempt", "expected", "found", "evidence")
    for check in report.checks:
        color = "green" if check.holds else "red"
        table.add_row(
            check.probe,
            escape(check.identity),
            escape(check.warehouse),
            escape(check.attempt),
            check.expected,
            f"[{color}]{MARKS[check.found]}[/]",
            escape(check.evidence),
        )
    console = Console()
    console.print(table)
    for note in report.notes:
        console.print(f"note: {escape(note)}")
    held = sum(check.holds for check in report.checks)
    if report.holds:
        console.print(f"{stack}: all {held} checks hold.")
    else:
        failed = ", ".join(report.failed_probes)
        console.print(f"{stack}: no proof of isolation. {len(report.checks) - held} checks do not hold: {failed}")
