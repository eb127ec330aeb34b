"""Announce and purge the archived warehouses of stacks, as `lakewright expire` does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from lakewright_engine.model.errors import EngineError

from lakewright.deletions.archive_purging import ArchivePurger, ArchiveStatus
from lakewright.drift.stack_providers import create_resolver
from lakewright.environment.loading import load_environment
from lakewright.errors import LakewrightError
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.errors import ArchiveRefusedError
from lakewright.ownership.backend_identity import compute_identity
from lakewright.ownership.mark import Claimant, format_stack
from lakewright.project_files.stack_files import DEFAULT_PROJECT_ID
from lakewright.validation.documents import as_list, as_mapping, as_text

if TYPE_CHECKING:
    from lakewright.drift.session import ScanSession
    from lakewright.fleet.selection import SelectedStack
    from lakewright.fleet.states import StackState, StateReader
    from lakewright.lakekeeper.api.connection.client import Client, ClientPool

_DYNAMIC = "pulumi-python:dynamic/lakekeeper:"
TENANT_RECORD = f"{_DYNAMIC}TenantRecord"
"""Type of the tenant's record in states."""
_NO_SPEC = (
    "archived warehouses could not be checked: its stack file has no spec with `name` and `environment`, which name"
    " server and project"
)


def open_project(session: ScanSession, clients: ClientPool, stack: SelectedStack) -> tuple[Client, str] | None:
    """Return a client of the server that a spec names, and the id of its project; None without a spec.

    Args:
        session: The run over many stacks.
        clients: Clients of this stack only, as its configuration can have the secret.
        stack: The stack with its spec.

    Raises:
        LakewrightError: The spec or the environment cannot be read.
    """
    spec = stack.require_spec()
    if not stack.tenant or not stack.environment:
        return None
    project = as_mapping(spec.get("project"))
    default_id = DEFAULT_PROJECT_ID if project.get("shared") is True else stack.tenant
    project_id = as_text(project.get("id")) or default_id
    environment = load_environment(session.project, stack.environment)
    server = environment.lakekeeper.reference.model_copy(update={"project_id": project_id})
    return clients.get(server, create_resolver(session, stack.name)), project_id


def process_archives(
    session: ScanSession,
    clients: ClientPool,
    stack: SelectedStack,
    states: StateReader,
    permitted: Collection[str] = (),
) -> tuple[list[ArchiveStatus], list[str]]:
    """Announce and purge the archived warehouses of a stack, and return them with problems.

    The spec names server and project, as the state of a destroyed stack has none.

    Args:
        session: The run over many stacks.
        clients: Clients of the stack.
        stack: The stack with its spec. Without a spec, nothing is done, which is a problem if the state names data of
            removed warehouses.
        states: Reads the state of the stack, which is read again just before a purge.
        permitted: Names of warehouses whose archives may be purged without a proof of their backend, and with a backend
            that reports no locks.
    """
    project = as_mapping(stack.spec.get("project"))
    if project.get("shared") is True:
        return [], []  # warehouses of shared projects are never archived
    try:
        state = states.read(stack.name)
        kept_places = _list_kept_places(state)
        if kept_places is not None and not kept_places:
            return [], []  # the stack has removed no warehouse
        opened = open_project(session, clients, stack)
        if opened is None:
            return [], [_NO_SPEC] if kept_places else []
        client, project_id = opened
        aws = load_environment(session.project, stack.environment).aws
        purger = ArchivePurger(
            client,
            project_id,
            Claimant(
                format_stack(session.project.name, stack.name), as_text((_find_record(state) or {}).get("bucket_tag"))
            ),
            lambda: _list_warehouse_ids(states.read(stack.name)),
            state.reports_locks,
            kept_places,
            lambda bucket, region: OwnBucket.model_validate(
                aws.describe_access(bucket, region or aws.region or "us-east-1")
            ),
            session.clock(),
            compute_identity(session.project.state_url),
            permitted,
        )
        statuses = purger.run()
    except (LakewrightError, EngineError) as error:
        return [], [f"archived warehouses could not be checked: {' '.join(str(error).split())}"]
    return statuses, [status.problem for status in statuses if status.problem]


def keeps_removed_warehouses(state: StackState) -> bool:
    """Return whether a stack keeps data of warehouses that it has removed, such as archives."""
    return bool(_list_kept_places(state))


def _find_record(state: StackState) -> Mapping[str, Any] | None:
    """Return the outputs of the tenant's record; None if the state has no record."""
    records = (resource for resource in state.resources if resource.type == TENANT_RECORD)
    return next((record.outputs for record in records), None)


def _list_kept_places(state: StackState) -> frozenset[tuple[str, str]] | None:
    """Return bucket and key prefix of the removed warehouses whose data the stack keeps; None without a record."""
    record = _find_record(state)
    if record is None:
        return None
    kept_data = map(as_mapping, as_list(record.get("kept")))
    return frozenset(
        (str(data.get("bucket")), str(data.get("key_prefix"))) for data in kept_data if not data.get("is_declared")
    )


def _list_warehouse_ids(state: StackState) -> frozenset[str]:
    """Return the ids of the warehouses in a state. Raise ArchiveRefusedError if the stack is being updated."""
    if state.locked:
        raise ArchiveRefusedError(f"an update is running ({', '.join(state.locked)}); the next run continues")
    return frozenset(str(resource.id) for resource in state.resources if resource.type == f"{_DYNAMIC}Warehouse")
