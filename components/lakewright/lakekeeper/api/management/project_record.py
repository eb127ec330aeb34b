"""Calls about the record role of a project, which contains the mark of the owning stack."""

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import (
    AlreadyExistsError,
    ForbiddenError,
    LakekeeperError,
    NotFoundError,
    ResponseTimeoutError,
    UnconfirmedError,
)
from lakewright.lakekeeper.api.management import projects, roles, warehouses
from lakewright.ownership.consent import Consent, ConsentKind
from lakewright.ownership.mark import OwnershipMark, UnreadableMarkError, parse_description
from lakewright.ownership.marked_object import MarkedObject
from lakewright.ownership.record_role import RECORD_ROLE


def read_mark(client: Client, project_id: str) -> OwnershipMark:
    """Return the mark of a project; an empty mark if the project does not exist or has no record role.

    Raises:
        LakekeeperError: The record role has no mark that this version reads, so its owner is unknown.
        ForbiddenError: The project exists, and its roles cannot be listed.
    """
    role = _find_record(client, project_id)
    if role is None:
        return OwnershipMark()
    try:
        return parse_description(role.get("description"))
    except UnreadableMarkError as unreadable:
        raise LakekeeperError(
            f"role `{RECORD_ROLE}` of project {project_id} at {client.endpoint} does not say which stack owns the"
            f" project: {unreadable}. Nothing was changed. Restore the role's description, or delete the role if no"
            " other stack owns the project."
        ) from None


def read_cached_mark(client: Client, project_id: str) -> OwnershipMark:
    """Return the mark of a project, read once in a run. The errors are those of `read_mark`."""
    key = (client, "project mark", project_id)
    return client.lists.get_cached_in_run(key, lambda: read_mark(client, project_id))


def find_marked_project(client: Client, project_id: str, *others: Consent) -> MarkedObject:
    """Return a project with its mark, read once in a run. The errors are those of `read_mark`.

    Args:
        client: Client of the server.
        project_id: Id of the project.
        others: Consents that also permit the adoption of an object in the project.
    """
    consents = (Consent(ConsentKind.PROJECT, project_id), *others)
    mark = read_cached_mark(client, project_id)
    return MarkedObject(f"project {project_id} at {client.endpoint}", mark, consents)


def find_marked_warehouse(client: Client, warehouse_id: str) -> MarkedObject | None:
    """Return the project of a warehouse with its mark; None if the warehouse does not exist.

    The errors are those of `read_mark`.
    """
    key = (client, "project of warehouse", warehouse_id)
    try:
        warehouse = client.lists.get_cached_in_run(key, lambda: warehouses.get(client, warehouse_id))
    except ForbiddenError:
        return None  # OpenFGA refuses a warehouse that does not exist
    return find_marked_project(client, str(warehouse["project-id"])) if warehouse else None


def write_mark(client: Client, project_id: str, mark: OwnershipMark) -> None:
    """Write the mark of a project. Create the record role if there is none."""
    role = _find_record(client, project_id)
    if role is None:
        _create_record(client, project_id, mark)
    elif role.get("description") != mark.to_description():
        roles.replace(client, project_id, str(role["id"]), RECORD_ROLE, mark.to_description())
    client.lists.forget_run()


def delete_mark(client: Client, project_id: str) -> None:
    """Delete the record role of a project. Succeed if there is none."""
    role = _find_record(client, project_id)
    if role is not None:
        roles.delete(client, project_id, str(role["id"]))
    client.lists.forget_run()


def _create_record(client: Client, project_id: str, mark: OwnershipMark) -> None:
    try:
        roles.create(client, project_id, {"name": RECORD_ROLE, "description": mark.to_description()})
    except (AlreadyExistsError, ResponseTimeoutError, UnconfirmedError):
        # A lost response may be that of this request. Another stack's record has another mark.
        role = _find_record(client, project_id)
        if role is None or role.get("description") != mark.to_description():
            raise


def _find_record(client: Client, project_id: str) -> roles.RoleResponse | None:
    try:
        return roles.find_record(client, project_id)
    except (NotFoundError, ForbiddenError):
        if projects.name_of(client, project_id) is not None:
            raise
        return None  # the project does not exist
