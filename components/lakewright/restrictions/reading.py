"""Read the archived warehouses and enforced limits of stacks from their servers. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakewright_engine.model.errors import EngineError

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.deletions.archive_run import TENANT_RECORD, open_project
from lakewright.drift.session import ScanSession
from lakewright.errors import LakewrightError
from lakewright.fleet.states import StateReader, state_reader
from lakewright.lakekeeper.api.connection.client import Client, ClientPool
from lakewright.lakekeeper.api.management import limit_records
from lakewright.lakekeeper.archive import archive_records
from lakewright.ownership.mark import format_stack
from lakewright.restrictions.model import ArchivedWarehouse, StackRestrictions
from lakewright.validation.documents import as_list, as_mapping, as_text
from lakewright.validation.moment import Clock, has_ended, read_clock

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import SelectedStack


def read_restrictions(
    project: PulumiProject,
    selected: Sequence[SelectedStack],
    *,
    reader: StateReader | None = None,
    clock: Clock = read_clock,
) -> list[StackRestrictions]:
    """Return the archived warehouses and enforced limits of stacks.

    Args:
        project: The project of the stacks.
        selected: The stacks.
        reader: Reads the states; the reader of the project's backend if omitted.
        clock: Time of this machine.
    """
    states, session = reader or state_reader(project), ScanSession(project, clock=clock)

    def read(stack: SelectedStack) -> StackRestrictions:
        try:
            record = find_record(states.read(stack.name).resources)
        except EngineError as error:
            return _start(stack, [str(error)])
        return read_stack(session, stack, record)

    try:
        return [*session.map(read, selected)]
    finally:
        session.close()


def find_record(resources: Iterable[Any]) -> Mapping[str, Any] | None:
    """Return the outputs of the tenant's record among the resources of a state; None if there is none."""
    return next((resource.outputs for resource in resources if resource.type == TENANT_RECORD), None)


def read_stack(session: ScanSession, stack: SelectedStack, record: Mapping[str, Any] | None) -> StackRestrictions:
    """Return the archived warehouses and enforced limits of one stack. Parts that cannot be read become problems.

    Args:
        session: The run over many stacks.
        stack: The stack with its spec, which names server and project.
        record: Outputs of the tenant's record; None if the state has none.
    """
    restrictions = _start(stack)
    try:
        with closing(ClientPool(shared=session.clients)) as clients:
            opened = open_project(session, clients, stack)
            if opened is None:
                restrictions.problems.append(
                    "archives and enforced limits could not be read: its stack file has no spec with `name` and"
                    " `environment`, which name server and project"
                )
                return restrictions
            client, project_id = opened
            if as_mapping(stack.spec.get("project")).get("shared") is not True:
                owner = format_stack(session.project.name, stack.name)
                restrictions.archives = _list_archives(client, project_id, owner, stack, session.clock())
            if record_id := as_text((record or {}).get("bucket_tag")):
                restrictions.limits = limit_records.find_cached_mark(client, project_id, record_id)
    except (LakewrightError, UnresolvedCredentialError, EngineError) as error:
        restrictions.problems.append(f"archives and enforced limits could not be read: {error}")
    except (ValueError, KeyError) as error:  # such as a role without a time
        text = f"a response of the server, or the spec, is not as expected: {type(error).__name__}: {error}"
        restrictions.problems.append(f"archives and enforced limits could not be read: {text}")
    return restrictions


def _start(stack: SelectedStack, problems: Iterable[str] = ()) -> StackRestrictions:
    return StackRestrictions(stack.name, stack.tenant, stack.environment, problems=[*problems])


def _list_archives(
    client: Client, project_id: str, owner: str, stack: SelectedStack, now: datetime
) -> list[ArchivedWarehouse]:
    """Return the archives of a stack. A record that cannot be read may belong to it."""
    archives: list[ArchivedWarehouse] = []
    announcements = archive_records.list_cached_announcements(client, project_id)
    for archive in archive_records.list_cached_archives(client, project_id):
        mark = archive.mark
        if mark is not None and mark.stack != owner:
            continue
        name = archive.warehouse_id if mark is None else mark.warehouse
        announcement = announcements.get(archive.warehouse_id)
        archives.append(
            ArchivedWarehouse(
                warehouse=name,
                warehouse_id=archive.warehouse_id,
                archived_at=archive.archived_at,
                due_at=None if mark is None else mark.compute_due_time(archive.archived_at),
                announced_at=None if announcement is None else announcement.announced_at,
                is_reactivated=mark is not None and _adopts(stack, mark.warehouse, now),
                has_begun=announcement is not None and announcement.has_begun,
                problem=archive.problem,
            )
        )
    return archives


def _adopts(stack: SelectedStack, warehouse: str, now: datetime) -> bool:
    """Return whether the spec of a stack declares a warehouse, and permits its adoption now."""
    entries = (as_mapping(entry) for entry in as_list(stack.spec.get("warehouses")))
    entry = next((entry for entry in entries if entry.get("name") == warehouse), None)
    return entry is not None and any(
        _is_permitted(permission, now) for permission in (entry.get("adopt"), stack.spec.get("adopt"))
    )


def _is_permitted(permission: object, now: datetime) -> bool:
    until = as_mapping(permission).get("until")
    return permission is True if until is None else not has_ended(str(until), now)
