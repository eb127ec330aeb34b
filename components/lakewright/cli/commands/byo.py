"""`lakewright byo`: reserve the external ID for a tenant's own bucket, and print the policies of the role."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.aws.role_request_formats import RequestFormat
from lakewright.byo.stack_state import read_external_ids
from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, StackName, load_project, open_stack
from lakewright.cli.stack_argument import CommandLine
from lakewright.terminal.escaping import escape_line

if TYPE_CHECKING:
    from collections.abc import Generator

    from lakewright_engine.project.project import PulumiProject
    from lakewright_engine.project.stack_config import StackConfig

    from lakewright.byo.reservation import Reservation
    from lakewright.environment.environment import Environment
    from lakewright.spec import TenantSpec
    from lakewright.storage.existing import ExistingStorage


app = CommandLine(add_completion=False, no_args_is_help=True, help="Bring your own bucket.")


@app.callback()
def byo() -> None:
    """Bring your own bucket."""


@app.command()
def reserve(
    stack: StackName,
    *,
    storage: Annotated[
        str | None, typer.Option("--storage", help="Name of the storage, if several have backend `existing`.")
    ] = None,
    request_format: Annotated[
        RequestFormat, typer.Option("--format", help="Form of the role's policies.")
    ] = RequestFormat.JSON,
    directory: Directory = HERE,
) -> None:
    """Reserve the external ID of a role, and print the trust and permission policies that the role needs.

    The external ID is kept encrypted in the stack's configuration. Later calls print the same ID. Needs the stack's
    passphrase.

    Example: lakewright byo reserve --stack acme --format terraform
    """
    from lakewright.aws.access import DEFAULT_SESSION_SECONDS  # noqa: PLC0415 - `--help` needs no models
    from lakewright.aws.role_request import make_request  # noqa: PLC0415
    from lakewright.aws.role_request_formats import render  # noqa: PLC0415 - `--help` needs no models
    from lakewright.byo.reservation import reserve_external_id  # noqa: PLC0415
    from lakewright.byo.stack_state import read_external_ids, read_key_prefixes  # noqa: PLC0415

    project = load_project(directory)
    spec, environment = _spec(project, stack)
    name, selected_storage = _storage(spec, storage)
    warehouses = [warehouse for warehouse in spec.warehouses if spec.find_storage_name(warehouse) == name]
    if not warehouses:
        raise UsageError(f"no warehouse of stack '{stack}' uses storage `{name}`; declare one first")
    principal = environment.lakekeeper.principal_arn
    if principal is None:
        raise UsageError(
            f"environment {spec.environment} names no `lakekeeper.principal_arn`: the AWS identity of Lakekeeper,"
            " which the role must trust"
        )
    backend = project.backend()
    snapshot = backend.load(project.name, stack) if backend.exists(project.name, stack) else None
    external_ids = {key.removeprefix(f"{spec.name}-"): value for key, value in read_external_ids(snapshot).items()}
    with _save_settings(project, stack, selected_storage) as settings:
        reservation = reserve_external_id(
            name, selected_storage, settings, external_ids, [warehouse.name for warehouse in warehouses]
        )
    _explain(reservation, stack, name)
    key_prefixes = read_key_prefixes(snapshot)
    request = make_request(
        spec.name,
        name,
        selected_storage,
        key_prefixes=[
            key_prefixes.get(warehouse.name)
            or warehouse.key_prefix
            or f"{spec.name}/{warehouse.renamed_from or warehouse.name}"
            for warehouse in warehouses
        ],
        external_id=reservation.external_id,
        principal_arn=principal,
        session_tags=environment.lakekeeper.principal_has_session_tags
        or any(warehouse.session_tags for warehouse in warehouses),
        session_seconds=max([DEFAULT_SESSION_SECONDS, *(warehouse.token_seconds or 0 for warehouse in warehouses)]),
    )
    print(render(request, request_format))


@app.command()
def check(
    stack: StackName,
    *,
    profile: Annotated[
        str | None, typer.Option(help="AWS profile with the identity of Lakekeeper, to try listings as well.")
    ] = None,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Prove again that the roles need their external IDs and reach their prefixes only. Exit code 1 if they do not.

    Lakekeeper tries it, and writes probe objects. Needs the stack's passphrase.

    Example: lakewright byo check --stack acme --json
    """
    from lakewright.byo.role_report import report_roles  # noqa: PLC0415 - `--help` needs no client

    project, backend = open_stack(directory, stack)
    snapshot = backend.load(project.name, stack)
    settings = project.stack_config(stack)
    reports = report_roles(snapshot, settings.get, profile)
    if not reports:
        raise UsageError(f"stack '{stack}' has no role of a tenant's own bucket; run `lakewright up --stack {stack}`")
    if as_json:
        print(json.dumps([report.model_dump() for report in reports], indent=2))
    for report in reports if not as_json else []:
        for check in report.checks:
            print(escape_line(f"{report.warehouse}: {check.name}: {check.status}: {check.reason}"))
    if any(report.failed for report in reports):
        raise typer.Exit(1)


def _spec(project: PulumiProject, stack: str) -> tuple[TenantSpec, Environment]:
    """Return spec and environment of a stack whose storages may not name their roles yet. Raises SpecError."""
    from lakewright.environment.loading import platform_reader  # noqa: PLC0415
    from lakewright.environment.stack_config import read_stack_config  # noqa: PLC0415
    from lakewright.project_files.shared_values import locate_spec_problems  # noqa: PLC0415
    from lakewright.project_files.stack_files import SPEC_KEY, SPEC_SECTIONS, raw_spec  # noqa: PLC0415
    from lakewright.storage.existing import fill_missing_roles  # noqa: PLC0415

    document, _ = fill_missing_roles(raw_spec(project.stack_file(stack)))
    settings = project.stack_config(stack)
    with locate_spec_problems(project.stack_file(stack), *SPEC_SECTIONS):
        return read_stack_config(
            document or None,
            source=f"stack {stack}, {SPEC_KEY}",
            environments=project.root / "environments",
            environ=os.environ,
            region=settings.get("aws:region"),
            read_platform=platform_reader(project),
        )


def _storage(spec: TenantSpec, requested_name: str | None) -> tuple[str, ExistingStorage]:
    from lakewright.storage.existing import ExistingStorage  # noqa: PLC0415

    storages = {name: storage for name, storage in spec.storage.items() if isinstance(storage, ExistingStorage)}
    names = ", ".join(sorted(storages)) or "none"
    if requested_name is not None:
        if requested_name not in storages:
            raise UsageError(f"no storage `{requested_name}` with backend `existing`; there are: {names}")
        return requested_name, storages[requested_name]
    if len(storages) != 1:
        raise UsageError(f"expected one storage with backend `existing`, or --storage NAME; there are: {names}")
    return next(iter(storages.items()))


@contextmanager
def _save_settings(project: PulumiProject, stack: str, storage: ExistingStorage) -> Generator[StackConfig]:
    """Give the block the stack's configuration, and save what it changes."""
    from lakewright.byo.reservation import is_in_configuration  # noqa: PLC0415

    if is_in_configuration(storage):
        project.secrets(stack)  # before the settings are read: this may save a new salt
    settings = project.stack_config(stack)
    before = settings.text
    yield settings
    if settings.text != before:
        settings.save()


def _explain(reservation: Reservation, stack: str, name: str) -> None:
    """Print to standard error where the external ID is kept. Standard output has the policies only."""
    if reservation.is_new:
        print(
            f"Reserved an external ID for storage `{name}`. It is encrypted in the configuration of stack '{stack}',"
            f" key `{reservation.key}`.",
            file=sys.stderr,
        )
    if reservation.warehouses_with_other_id:
        print(
            f"note: {', '.join(reservation.warehouses_with_other_id)} still use another external ID, which an earlier"
            " `up` made. The next `up` moves them to the reserved ID: let the role accept both until then.",
            file=sys.stderr,
        )


def print_external_ids(
    stack: StackName,
    *,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the external IDs of roles that an `up` made. Needs the stack's passphrase.

    TENANT-WAREHOUSE is the ID of the catalog's role: a tenant's own role must require it. `lakewright byo reserve`
    takes it over, and prints it with the policies of the role. Consumers of `shares` and `maintenance_role` name the
    IDs TENANT-WAREHOUSE.share-NAME and TENANT-WAREHOUSE.maintenance when they assume their roles.

    Example: lakewright external-ids --stack acme --json
    """
    project, backend = open_stack(directory, stack)
    external_ids = read_external_ids(backend.load(project.name, stack))
    if as_json:
        print(json.dumps(external_ids, indent=2))
        return
    for name, value in sorted(external_ids.items()):
        print(f"{name}  {value}")
    if not external_ids:
        print(f"Stack '{stack}' has made no external IDs.")
