"""Calls about the record role of a project, which contains the mark of the owning stack."""

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
    """Return the mark of a project, read once in a run. Raises the errors of `read_mark`."""
    key = (client, "project mark", project_id)
    return client.lists.get_cached_in_run(key, lambda: read_mark(client, project_id))


def find_marked_project(client: Client, project_id: str, *consents: Consent) -> MarkedObject:
    """Return a project with its mark, read once in a run. Raises the errors of `read_mark`.

    Args:
        client: Client of the server.
        project_id: Id of the project.
        consents: Consents that also permit the adoption of an object in the project.
    """
    return _to_marked(client, project_id, read_cached_mark(client, project_id), *consents)


def find_live_marked_project(client: Client, project_id: str, *consents: Consent) -> MarkedObject:
    """Return what `find_marked_project` returns, read from the server now."""
    return _to_marked(client, project_id, read_mark(client, project_id), *consents)


def _to_marked(client: Client, project_id: str, mark: OwnershipMark, *consents: Consent) -> MarkedObject:
    all_consents = (Consent(ConsentKind.PROJECT, project_id), *consents)
    return MarkedObject(f"project {project_id} at {client.endpoint}", mark, all_consents)


def find_marked_warehouse(client: Client, warehouse_id: str) -> MarkedObject | None:
    """Return the project of a warehouse with its mark; None if the warehouse does not exist.

    Other errors are the errors of `read_mark`.

    Raises:
        ForbiddenError: The warehouse may not be read. Some authorizers also refuse a warehouse that does not exist.
    """
    key = (client, "project of warehouse", warehouse_id)
    try:
        warehouse = client.lists.get_cached_in_run(key, lambda: warehouses.get(client, warehouse_id))
    except ForbiddenError as denied:
        denied.add(
            f"The owner of warehouse {warehouse_id} is therefore not known. Allow `get_metadata` on it to the identity"
            " that runs the program."
        )
        raise
    return find_marked_project(client, str(warehouse["project-id"])) if warehouse else None


def write_mark(client: Client, project_id: str, mark: OwnershipMark) -> None:
    """Write the mark of a project. Create the record role if there is none.

    Raises:
        ForbiddenError: The identity may not create or change the record role. The message names the right.
    """
    role = _find_record(client, project_id)
    try:
        if role is None:
            _create_record(client, project_id, mark)
        elif role.get("description") != mark.to_description():
            roles.replace(client, project_id, str(role["id"]), RECORD_ROLE, mark.to_description())
    except ForbiddenError as denied:
        denied.add(_describe_missing_right(client, project_id, role))
        raise
    finally:
        client.lists.forget_run()


def find_missing_right(client: Client, project_id: str, mark: OwnershipMark) -> str | None:
    """Return which right on a project is missing to write a mark; None if nothing is missing, or it is not known.

    A project that does not exist has no rights that are missing: its creator has all of them.

    Args:
        client: Client of the server.
        project_id: Id of the project.
        mark: The mark to write. Nothing is asked if the project has it.
    """
    if read_cached_mark(client, project_id) == mark:
        return None
    role = _find_record(client, project_id)
    if role is None:
        path, action = f"{projects.ROOT}/project/actions", "create_role"
    else:
        path, action = f"{roles.ROOT}/{role['id']}/actions", "update"
    try:
        response = client.json("GET", path, project=project_id)
    except RefusedError:
        return None  # the project does not exist, or the server does not tell: the write itself is refused
    allowed = cast(list[dict[str, Any]], response["allowed-actions"])
    if any(candidate.get("action") == action for candidate in allowed):
        return None
    right = _describe_missing_right(client, project_id, role)
    return f"nothing was changed: project {project_id} at {client.endpoint} cannot get the mark of its owner. {right}"


def _describe_missing_right(client: Client, project_id: str, role: roles.RoleResponse | None) -> str:
    identity = "the identity that runs the program"
    if role is None:
        return (
            f"Allow `create_role` on project {project_id} at {client.endpoint} to {identity} (with OpenFGA, its"
            f" `role_creator`): the role `{RECORD_ROLE}` records which stack owns the project."
        )
    return (
        f"Allow `update` on role {role['id']} (`{RECORD_ROLE}`) at {client.endpoint} to {identity} (with"
        " OpenFGA, the role's"
        " `ownership`, or `security_admin` of the project): it records which stack owns the project."
    )


def delete_mark(client: Client, project_id: str) -> None:
    """Delete the record role of a project. Succeed if there is none."""
    role = _find_record(client, project_id)
    if role is not None:
        roles.delete(client, project_id, str(role["id"]))
    client.lists.forget_run()


def _create_record(client: Client, project_id: str, mark: OwnershipMark) -> None:
    try:
        roles.create(client, project_id, {"name": RECORD_ROLE, "description": mark.to_description()})
    except (AlreadyExistsError, ResponseTimeoutError, UnconfirmedError) as error:
        # A lost response may be that of this request. Another stack's record has another mark.
        role = _find_record(client, project_id)
        if role is None and isinstance(error, AlreadyExistsError):
            error.add(
                f"A role of an identity provider has the name `{RECORD_ROLE}`, which is that of the record of the"
                " project's owner. Rename or delete it at the identity provider."
            )
        if role is None or role.get("description") != mark.to_description():
            raise


def _find_record(client: Client, project_id: str) -> roles.RoleResponse | None:
    try:
        return roles.find_record(client, project_id)
    except (NotFoundError, ForbiddenError) as refused:
        if projects.read_name(client, project_id) is None:
            return None  # the project does not exist
        refused.add(
            f"The owner of project {project_id} is therefore not known. Allow `list_roles` on the project to the"
            " identity that runs the program (with OpenFGA, its `describe`)."
        )
        raise
