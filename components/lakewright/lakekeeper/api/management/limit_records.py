"""Calls about the roles that record the enforcement of limits. Each belongs to one tenant in a project."""

from __future__ import annotations

from collections.abc import Mapping

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, LakekeeperError
from lakewright.lakekeeper.api.management import record_roles, roles
from lakewright.ownership.limit_mark import LimitMark, parse_limit_mark
from lakewright.ownership.mark import UnreadableMarkError
from lakewright.ownership.record_role import format_limit_record, is_limit_record


def find_mark(client: Client, project_id: str, record_id: str) -> LimitMark | None:
    """Return the enforced limits of a tenant, read now; None if no limit is enforced.

    Raises:
        LakekeeperError: The record cannot be read.
        ForbiddenError: The project exists, and its roles cannot be listed.
    """
    return _read_mark(client, project_id, record_id, record_roles.list_records(client, project_id))


def find_cached_mark(client: Client, project_id: str, record_id: str) -> LimitMark | None:
    """Return what `find_mark` returns. The roles of a project are read once in a run."""
    return _read_mark(client, project_id, record_id, _list_cached_records(client, project_id))


def list_cached_marks(client: Client, project_id: str) -> list[LimitMark]:
    """Return the enforced limits of all tenants of a project. Records that cannot be read are left out."""
    marks: list[LimitMark] = []
    for name, role in _list_cached_records(client, project_id).items():
        if is_limit_record(name):
            try:
                marks.append(parse_limit_mark(role.get("description")))
            except UnreadableMarkError:
                continue
    return marks


def write_mark(client: Client, project_id: str, record_id: str, mark: LimitMark) -> None:
    """Record the enforced limits of a tenant. Create the role if there is none."""
    name, text = format_limit_record(record_id), mark.to_description()
    role = record_roles.list_records(client, project_id).get(name.casefold())
    try:
        if role is None:
            roles.create(client, project_id, {"name": name, "description": text})
        elif role.get("description") != text:
            roles.replace(client, project_id, str(role["id"]), name, text)
    except ForbiddenError as refused:
        refused.add(
            f"Allow this identity to create roles in project {project_id} and to change role `{name}` (with OpenFGA,"
            " `role_creator` of the project): it records which grants are suspended. No grant was changed."
        )
        raise
    finally:
        client.lists.forget_run()


def delete_mark(client: Client, project_id: str, record_id: str) -> None:
    """Delete the record of a tenant. Succeed if there is none."""
    role = record_roles.list_records(client, project_id).get(format_limit_record(record_id).casefold())
    if role is not None:
        roles.delete(client, project_id, str(role["id"]))
    client.lists.forget_run()


def delete_all_marks(client: Client, project_id: str) -> None:
    """Delete the records of all tenants of a project, which the server counts as its content."""
    for name, role in record_roles.list_records(client, project_id).items():
        if is_limit_record(name):
            roles.delete(client, project_id, str(role["id"]))
    client.lists.forget_run()


def _read_mark(
    client: Client, project_id: str, record_id: str, records: Mapping[str, roles.RoleResponse]
) -> LimitMark | None:
    name = format_limit_record(record_id)
    role = records.get(name.casefold())
    if role is None:
        return None
    try:
        return parse_limit_mark(role.get("description"))
    except UnreadableMarkError as unreadable:
        raise LakekeeperError(
            f"role `{name}` of project {project_id} at {client.endpoint} does not record which grants are suspended:"
            f" {unreadable}. Restore its description, or delete the role and run `up --refresh`, which grants the"
            " declared grants."
        ) from None


def _list_cached_records(client: Client, project_id: str) -> Mapping[str, roles.RoleResponse]:
    key = (client, "record roles", project_id)
    return client.lists.get_cached_in_run(key, lambda: record_roles.list_records(client, project_id))
