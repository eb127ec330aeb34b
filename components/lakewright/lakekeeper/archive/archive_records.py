"""Calls about the roles that record archived warehouses and announce their purges."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.lakekeeper.api.management import record_roles, roles
from lakewright.ownership.archive_mark import ArchiveMark, compute_purge_time, parse_archive_mark
from lakewright.ownership.mark import UnreadableMarkError
from lakewright.ownership.record_role import (
    find_announced_warehouse,
    find_archived_warehouse,
    format_announcement,
    format_archive_record,
)
from lakewright.validation.moment import format_moment

_BEGUN = "`lakewright expire` deletes the data of the warehouse"


@dataclass(frozen=True)
class ArchiveRecord:
    """The record of an archived warehouse. The server wrote all its times."""

    warehouse_id: str
    role_id: str
    mark: ArchiveMark | None
    """None if the mark cannot be read."""
    archived_at: datetime
    problem: str | None = None
    """Why the record permits no purge; None if it does."""


@dataclass(frozen=True)
class Announcement:
    """The announcement of a purge."""

    role_id: str
    announced_at: datetime
    """Time of the server at which it was announced."""
    has_begun: bool = False
    """Whether the purge had begun when a list of announcements was read."""


def list_archives(client: Client, project_id: str) -> list[ArchiveRecord]:
    """Return the records of the archived warehouses of a project, sorted by name; none if the project does not exist.

    Raises:
        ForbiddenError: The project exists, and its roles cannot be listed.
    """
    return _read_archives(record_roles.list_records(client, project_id))


def list_cached_archives(client: Client, project_id: str) -> list[ArchiveRecord]:
    """Return what `list_archives` returns, read once in a run. Raises the errors of `list_archives`."""
    return _read_archives(_list_cached_roles(client, project_id))


def list_cached_announcements(client: Client, project_id: str) -> dict[str, Announcement]:
    """Return the announcements of purges by id of the warehouse, read once in a run.

    Raises the errors of `list_archives`.
    """
    listed_roles = _list_cached_roles(client, project_id)
    roles_by_warehouse = {
        archive.warehouse_id: listed_roles.get(format_announcement(archive.warehouse_id))
        for archive in _read_archives(listed_roles)
    }
    return {
        warehouse_id: Announcement(
            str(role["id"]), _parse_time(role["created-at"]), has_begun=role.get("description") == _BEGUN
        )
        for warehouse_id, role in roles_by_warehouse.items()
        if role is not None
    }


def find_archive(client: Client, project_id: str, warehouse_id: str) -> ArchiveRecord | None:
    """Return the record of an archived warehouse, read now; None if the warehouse is not archived."""
    archives = list_archives(client, project_id)
    return next((archive for archive in archives if archive.warehouse_id == warehouse_id.casefold()), None)


def write_archive(client: Client, project_id: str, warehouse_id: str, mark: ArchiveMark) -> None:
    """Record that a warehouse is archived. There is no record of it yet."""
    name = format_archive_record(warehouse_id)
    roles.create(client, project_id, {"name": name, "description": mark.to_description()})
    client.lists.forget_run()


def find_announcement(client: Client, project_id: str, warehouse_id: str) -> Announcement | None:
    """Return the announcement of a purge; None if the purge is not announced."""
    role = record_roles.list_records(client, project_id).get(format_announcement(warehouse_id))
    return None if role is None else Announcement(str(role["id"]), _parse_time(role["created-at"]))


def describe_announcements(client: Client, project_id: str, besides: Collection[str] = ()) -> list[str]:
    """Describe the announced purges in a project, read once in a run, except for warehouses of some names.

    Raises the errors of `list_archives`.
    """
    listed_roles = _list_cached_roles(client, project_id)
    texts: list[str] = []
    for archive in _read_archives(listed_roles):
        role = listed_roles.get(format_announcement(archive.warehouse_id))
        due = archive.mark.compute_due_time(archive.archived_at) if archive.mark else None
        if archive.mark is None or role is None or due is None or archive.mark.warehouse in besides:
            continue
        if role.get("description") == _BEGUN:
            texts.append(
                f"`lakewright expire` has begun to delete the data of archived warehouse `{archive.mark.warehouse}`"
            )
            continue
        purge_at = format_moment(compute_purge_time(due, _parse_time(role["created-at"])))
        texts.append(
            f"`lakewright expire` deletes the data of archived warehouse `{archive.mark.warehouse}` from {purge_at} on."
            " To keep it, declare the warehouse with `adopt: true`"
        )
    return texts


def announce(client: Client, project_id: str, warehouse_id: str, text: str) -> Announcement:
    """Announce a purge. An existing announcement is kept.

    Raises:
        LakekeeperError: The server did not keep the announcement.
    """
    announcement = find_announcement(client, project_id, warehouse_id)
    if announcement is None:
        roles.create(client, project_id, {"name": format_announcement(warehouse_id), "description": text})
        announcement = find_announcement(client, project_id, warehouse_id)
    if announcement is None:
        raise LakekeeperError(
            f"the announcement of the purge of warehouse {warehouse_id} is not among the roles of project {project_id}"
            f" at {client.endpoint}. Nothing was deleted."
        )
    return announcement


def read_server_time(client: Client, project_id: str, warehouse_id: str, announcement: Announcement) -> datetime:
    """Return the present time of the server: it writes the time at which this call changes the announcement.

    The announcement of a purge that has begun says so afterwards, too.
    """
    name = format_announcement(warehouse_id)
    text = _BEGUN if has_begun(client, project_id, warehouse_id) else "`lakewright expire` reads the time of the server"
    roles.replace(client, project_id, announcement.role_id, name, text)
    role = roles.get(client, project_id, announcement.role_id)
    if role is None or not role.get("updated-at"):
        raise LakekeeperError(
            f"role `{name}` of project {project_id} at {client.endpoint} has no time of its last change, so the"
            " server's time is not known. Nothing was deleted."
        )
    return _parse_time(role["updated-at"])


def note_begin(client: Client, project_id: str, warehouse_id: str, announcement: Announcement) -> None:
    """Record that the purge begins, so that a later run completes it if this run is killed."""
    roles.replace(client, project_id, announcement.role_id, format_announcement(warehouse_id), _BEGUN)


def withdraw_begin(client: Client, project_id: str, warehouse_id: str, announcement: Announcement, text: str) -> None:
    """Replace the note of `note_begin` with the text of the announcement, since nothing was deleted."""
    roles.replace(client, project_id, announcement.role_id, format_announcement(warehouse_id), text)


def has_begun(client: Client, project_id: str, warehouse_id: str) -> bool:
    """Return whether a purge of the warehouse has begun, according to its announcement."""
    role = record_roles.list_records(client, project_id).get(format_announcement(warehouse_id))
    return role is not None and role.get("description") == _BEGUN


def delete_archive(client: Client, project_id: str, warehouse_id: str) -> None:
    """Delete the announcement of the purge of an archived warehouse, then its record. Succeed if there is none.

    If the run is killed in between, the record lets the next `up` reactivate the warehouse.
    """
    _delete_roles(client, project_id, [format_announcement(warehouse_id), format_archive_record(warehouse_id)])


def delete_purged_archive(client: Client, project_id: str, warehouse_id: str) -> None:
    """Delete the record of a purged warehouse, then the announcement of its purge.

    A record without the announcement would permit no run: nothing would say that this stack deleted the warehouse. If
    the run is killed in between, `delete_left_announcements` deletes the announcement.
    """
    _delete_roles(client, project_id, [format_archive_record(warehouse_id), format_announcement(warehouse_id)])


def delete_left_announcements(client: Client, project_id: str) -> None:
    """Delete announcements of purges that have begun and have no record: their purges have ended."""
    listed_roles = record_roles.list_records(client, project_id)
    archived_ids = {archive.warehouse_id for archive in _read_archives(listed_roles)}
    left_names = [
        name
        for name, role in listed_roles.items()
        if (warehouse_id := find_announced_warehouse(name))
        and warehouse_id not in archived_ids
        and role.get("description") == _BEGUN
    ]
    if left_names:
        _delete_roles(client, project_id, left_names)


def _delete_roles(client: Client, project_id: str, names: Sequence[str]) -> None:
    """Delete the record roles of these names that exist, in this order."""
    existing = record_roles.list_records(client, project_id)
    for name in names:
        if role := existing.get(name):
            roles.delete(client, project_id, str(role["id"]))
    client.lists.forget_run()


def _list_cached_roles(client: Client, project_id: str) -> Mapping[str, roles.RoleResponse]:
    key = (client, "record roles", project_id)
    return client.lists.get_cached_in_run(key, lambda: record_roles.list_records(client, project_id))


def _read_archives(listed_roles: Mapping[str, roles.RoleResponse]) -> list[ArchiveRecord]:
    return [
        _read_archive(warehouse_id, role)
        for name, role in sorted(listed_roles.items())
        if (warehouse_id := find_archived_warehouse(name))
    ]


def _read_archive(warehouse_id: str, role: Mapping[str, Any]) -> ArchiveRecord:
    problem = None
    try:
        mark = parse_archive_mark(role.get("description"))
    except UnreadableMarkError as unreadable:
        mark, problem = None, f"role `{role['name']}` does not record an archived warehouse: {unreadable}"
    if mark is not None and role.get("updated-at"):
        problem = f"role `{role['name']}` was changed at {role['updated-at']}, so the time of the purge is not known"
    return ArchiveRecord(warehouse_id, str(role["id"]), mark, _parse_time(role["created-at"]), problem)


def _parse_time(text: object) -> datetime:
    return datetime.fromisoformat(str(text))
