"""`lakewright verify`: prove from outside what the tenant's computing units can do, and what they cannot."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright.cli.options import HERE, Directory, StackName, open_stack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lakewright.client_access.check import VerifyCheck
    from lakewright.verify.run import VerifyReport
    from lakewright.verify.session.sessions import TenantSession
    from lakewright.verify.session.subjects import ProbeIdentity


def verify(
    stack: StackName,
    directory: Directory = HERE,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="Show only the checks that do not hold.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Prove a tenant's isolation with the identity of its computing units: what is allowed, and what is denied.

    Writes a table in a probe namespace of each warehouse and drops it again. Prints one line for each check. Exit code
    0 only if every check holds.

    Example: lakewright verify --stack acme --json
    """
    from lakewright.verify.run import run_probes  # noqa: PLC0415 - `--help` needs none of it

    report = run_probes(*open_session(stack, directory))
    checks = [check for check in report.checks if not (failed and check.holds)]
    if as_json:
        print(json.dumps(_to_json(stack, report, checks), indent=2, ensure_ascii=False))
    else:
        _print_lines(stack, report, checks)
    if not report.holds:
        raise typer.Exit(1)


def open_session(stack: str, directory: Path) -> tuple[TenantSession, list[ProbeIdentity]]:
    """Return what probes need, and the identities to run them with. Raises UsageError if there was no `up`."""
    from lakewright.cli.catalog_config import catalog_config  # noqa: PLC0415
    from lakewright.environment.loading import load_environment, stack_resolver  # noqa: PLC0415
    from lakewright.spec import read_stack_file  # noqa: PLC0415
    from lakewright.verify.session.sessions import TenantSession  # noqa: PLC0415
    from lakewright.verify.session.stack_warehouses import read_other_tenants, read_stack_warehouses  # noqa: PLC0415
    from lakewright.verify.settings import list_subjects, make_settings  # noqa: PLC0415

    project, backend = open_stack(directory, stack)
    spec = read_stack_file(project.stack_file(stack))
    environment = load_environment(project, spec.environment)
    session = TenantSession(
        spec,
        make_settings(spec, environment, stack_resolver(project.stack_config(stack))),
        catalog_config(stack, directory),
        read_stack_warehouses(backend, project.name, stack),
        read_other_tenants(backend, project.name, stack),
    )
    return session, list_subjects(spec, environment)


def _to_json(stack: str, report: VerifyReport, checks: Sequence[VerifyCheck]) -> dict[str, Any]:
    return {
        "version": 1,
        "stack": stack,
        "holds": report.holds,
        "failed_probes": report.failed_probes,
        "checks": [{**asdict(check), "holds": check.holds} for check in checks],
        "notes": report.notes,
    }


def _print_lines(stack: str, report: VerifyReport, checks: Sequence[VerifyCheck]) -> None:
    from lakewright.client_access.check import to_check_line  # noqa: PLC0415
    from lakewright.terminal.console import open_console  # noqa: PLC0415
    from lakewright.terminal.escaping import escape_line  # noqa: PLC0415
    from lakewright.terminal.text_lines import print_check_lines  # noqa: PLC0415

    console = open_console(highlight=False, markup=False)
    print_check_lines(console, [to_check_line(check) for check in checks])
    for note in report.notes:
        console.print(f"note: {escape_line(note)}", soft_wrap=True)
    holding = sum(check.holds for check in report.checks)
    if report.holds:
        summary = f"{stack}: all {holding} checks hold."
    else:
        failed = ", ".join(report.failed_probes)
        summary = f"{stack}: no proof of isolation. {len(report.checks) - holding} checks do not hold: {failed}"
    console.print(summary, soft_wrap=True)
