"""Calls about record roles, which contain the marks of owners: of a project, or of a warehouse in a shared project."""

from dataclasses import dataclass
from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import (
    AlreadyExistsError,
    ForbiddenError,
    LakekeeperError,
    NotFoundError,
    RefusedError,
    ResponseTimeoutError,
    UnconfirmedError,
)
from lakewright.lakekeeper.api.management import projects, roles
from lakewright.ownership.mark import OwnershipMark, UnreadableMarkError, parse_description
from lakewright.ownership.record_role import RECORD_ROLE, format_warehouse_record


@dataclass(frozen=True)
class RecordRole:
    """The record role of a project, or of one warehouse in a shared project."""

    project_id: str
    warehouse_id: str | None = None

    @property
    def name(self) -> str:
        """Name of the role."""
        return RECORD_ROLE if self.warehouse_id is None else format_warehouse_record(self.warehouse_id)

    @property
    def subject(self) -> str:
        """The object whose owner the role records, for messages."""
        return "the project" if self.warehouse_id is None else f"warehouse {self.warehouse_id}"


def read_mark(client: Client, record: RecordRole) -> OwnershipMark:
    """Return the mark in a record role; an empty mark if the project does not exist or has no such role.

    Raises:
        LakekeeperError: The role has no mark that this version reads, so the owner is unknown.
        ForbiddenError: The project exists, and its roles cannot be listed.
    """
    return _parse(client, record, _list_records(client, record.project_id))


def read_cached_mark(client: Client, record: RecordRole) -> OwnershipMark:
    """Return the mark in a record role. The roles of a project are read once in a run.

    Raises the errors of `read_mark`.
    """
    key = (client, "record roles", record.project_id)
    listed_records = client.lists.get_cached_in_run(key, lambda: _list_records(client, record.project_id))
    return _parse(client, record, listed_records)


def write_mark(client: Client, record: RecordRole, mark: OwnershipMark) -> None:
    """Write a mark into a record role. Create the role if there is none.

    Raises:
        ForbiddenError: The identity may not create or change the record role. The message names the right.
    """
    role = _find_record(client, record)
    try:
        if role is None:
            _create_record(client, record, mark)
        elif role.get("description") != mark.to_description():
            roles.replace(client, record.project_id, str(role["id"]), record.name, mark.to_description())
    except ForbiddenError as denied:
        denied.add(_describe_missing_right(client, record, role))
        raise
    finally:
        client.lists.forget_run()


def find_missing_right(client: Client, record: RecordRole, mark: OwnershipMark) -> str | None:
    """Return which right is missing to write a mark; None if nothing is missing, or it is not known.

    A project that does not exist has no rights that are missing: its creator has all of them.

    Args:
        client: Client of the server.
        record: The record role.
        mark: The mark to write. Nothing is asked if the role has it.
    """
    if read_cached_mark(client, record) == mark:
        return None
    role = _find_record(client, record)
    if role is None:
        path, action = f"{projects.ROOT}/project/actions", "create_role"
    else:
        path, action = f"{roles.ROOT}/{role['id']}/actions", "update"
    try:
        response = client.json("GET", path, project=record.project_id)
    except RefusedError:
        return None  # the project does not exist, or the server does not tell: the write itself is refused
    allowed = cast(list[dict[str, Any]], response["allowed-actions"])
    if any(candidate.get("action") == action for candidate in allowed):
        return None
    right = _describe_missing_right(client, record, role)
    subject = record.subject.replace("the project", "it")
    return (
        f"nothing was changed: project {record.project_id} at {client.endpoint} cannot get the mark of the owner of"
        f" {subject}. {right}"
    )


def delete_mark(client: Client, record: RecordRole) -> None:
    """Delete a record role. Succeed if there is none."""
    role = _find_record(client, record)
    if role is not None:
        roles.delete(client, record.project_id, str(role["id"]))
    client.lists.forget_run()


def _parse(client: Client, record: RecordRole, listed_records: dict[str, roles.RoleResponse]) -> OwnershipMark:
    role = listed_records.get(record.name.casefold())
    if role is None:
        return OwnershipMark()
    try:
        return parse_description(role.get("description"))
    except UnreadableMarkError as unreadable:
        raise LakekeeperError(
            f"role `{record.name}` of project {record.project_id} at {client.endpoint} does not say which stack owns"
            f" {record.subject}: {unreadable}. Nothing was changed. Restore the role's description, or delete the role"
            f" if no other stack owns {record.subject}."
        ) from None


def _describe_missing_right(client: Client, record: RecordRole, role: roles.RoleResponse | None) -> str:
    identity = "the identity that runs the program"
    if role is None:
        return (
            f"Allow `create_role` on project {record.project_id} at {client.endpoint} to {identity} (with OpenFGA, its"
            f" `role_creator`): the role `{record.name}` records which stack owns {record.subject}."
        )
    return (
        f"Allow `update` on role {role['id']} (`{record.name}`) at {client.endpoint} to {identity} (with"
        " OpenFGA, the role's"
        f" `ownership`, or `security_admin` of the project): it records which stack owns {record.subject}."
    )


def _create_record(client: Client, record: RecordRole, mark: OwnershipMark) -> None:
    try:
        roles.create(client, record.project_id, {"name": record.name, "description": mark.to_description()})
    except (AlreadyExistsError, ResponseTimeoutError, UnconfirmedError) as error:
        # A lost response may be that of this request. Another stack's record has another mark.
        role = _find_record(client, record)
        if role is None and isinstance(error, AlreadyExistsError):
            error.add(
                f"A role of an identity provider has the name `{record.name}`, which is that of the record of the"
                f" owner of {record.subject}. Rename or delete it at the identity provider."
            )
        if role is None or role.get("description") != mark.to_description():
            raise


def _find_record(client: Client, record: RecordRole) -> roles.RoleResponse | None:
    return _list_records(client, record.project_id).get(record.name.casefold())


def list_records(client: Client, project_id: str) -> dict[str, roles.RoleResponse]:
    """Return the record roles of a project by name, in lower case; none if the project does not exist.

    Raises:
        NotFoundError: The project exists, and the server finds no list of its roles.
        ForbiddenError: The project exists, and its roles cannot be listed.
    """
    try:
        return roles.list_records(client, project_id)
    except (NotFoundError, ForbiddenError):
        if projects.read_name(client, project_id) is None:
            return {}
        raise


def _list_records(client: Client, project_id: str) -> dict[str, roles.RoleResponse]:
    try:
        return list_records(client, project_id)
    except (NotFoundError, ForbiddenError) as refused:
        refused.add(
            f"The owner of project {project_id} is therefore not known. Allow `list_roles` on the project to the"
            " identity that runs the program (with OpenFGA, its `describe`)."
        )
        raise
