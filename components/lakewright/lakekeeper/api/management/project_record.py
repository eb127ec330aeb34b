"""The marks of projects and of objects in them.

The mark of a project covers everything in it. In a project that several tenants share, which has no mark, each
warehouse has a mark, which covers everything in the warehouse.
"""

from collections.abc import Callable

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError
from lakewright.lakekeeper.api.management import record_roles, roles, warehouses
from lakewright.lakekeeper.api.management.record_roles import RecordRole
from lakewright.ownership.consent import Consent, ConsentKind
from lakewright.ownership.mark import OwnershipMark, UnreadableMarkError, parse_description
from lakewright.ownership.marked_object import MarkedObject


def read_mark(client: Client, project_id: str) -> OwnershipMark:
    """Return the mark of a project. Raises the errors of `record_roles.read_mark`."""
    return record_roles.read_mark(client, RecordRole(project_id))


def read_cached_mark(client: Client, project_id: str) -> OwnershipMark:
    """Return the mark of a project, read once in a run. Raises the errors of `record_roles.read_mark`."""
    return record_roles.read_cached_mark(client, RecordRole(project_id))


def write_mark(client: Client, project_id: str, mark: OwnershipMark) -> None:
    """Write the mark of a project. Raises the errors of `record_roles.write_mark`."""
    record_roles.write_mark(client, RecordRole(project_id), mark)


def delete_mark(client: Client, project_id: str) -> None:
    """Delete the mark of a project. Succeed if there is none."""
    record_roles.delete_mark(client, RecordRole(project_id))


def find_missing_right(client: Client, project_id: str, mark: OwnershipMark) -> str | None:
    """Return which right on a project is missing to write its mark; None if nothing is missing, or it is not known."""
    return record_roles.find_missing_right(client, RecordRole(project_id), mark)


def find_marked_project(client: Client, project_id: str, *consents: Consent) -> MarkedObject:
    """Return a project with its mark, read once in a run. Raises the errors of `record_roles.read_mark`.

    Args:
        client: Client of the server.
        project_id: Id of the project.
        consents: Consents that also permit the adoption of an object in the project.
    """
    return _to_marked_project(client, project_id, read_cached_mark(client, project_id), *consents)


def find_live_marked_project(client: Client, project_id: str, *consents: Consent) -> MarkedObject:
    """Return what `find_marked_project` returns, read from the server now."""
    return _to_marked_project(client, project_id, read_mark(client, project_id), *consents)


def find_marked_warehouse(client: Client, warehouse_id: str) -> MarkedObject | None:
    """Return the project of a warehouse if its mark names an owner, else the warehouse; None if it does not exist.

    Raises the errors of `record_roles.read_mark`.

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
    if warehouse is None:
        return None
    project_id, name = str(warehouse["project-id"]), str(warehouse["name"])
    project = find_marked_project(client, project_id)
    if project.mark.names_owner:
        return project
    marked = find_shared_warehouse(client, warehouse)
    if marked.mark != OwnershipMark():
        return marked
    return find_marked_project(client, project_id, *list_warehouse_consents(project_id, name))


def find_shared_warehouse(client: Client, warehouse: warehouses.WarehouseResponse) -> MarkedObject:
    """Return a warehouse of a shared project with its own mark. Raises the errors of `record_roles.read_mark`."""
    record = RecordRole(str(warehouse["project-id"]), warehouses.read_id(warehouse))
    return _to_marked_warehouse(client, warehouse, record_roles.read_cached_mark(client, record))


def find_live_shared_warehouse(client: Client, warehouse: warehouses.WarehouseResponse) -> MarkedObject:
    """Return what `find_shared_warehouse` returns, read from the server now."""
    record = RecordRole(str(warehouse["project-id"]), warehouses.read_id(warehouse))
    return _to_marked_warehouse(client, warehouse, record_roles.read_mark(client, record))


def list_warehouse_consents(project_id: str, name: str) -> list[Consent]:
    """Return the consents that permit the adoption of a warehouse."""
    return [Consent(ConsentKind.WAREHOUSE, text) for text in (f"{project_id}/{name}", name)]


def find_marked_role(
    client: Client, project_id: str, find_role: Callable[[], roles.RoleResponse | None]
) -> MarkedObject:
    """Return the project of a role if its mark names an owner, else the role with the mark in its description.

    Args:
        client: Client of the server.
        project_id: Id of the role's project.
        find_role: Returns the role in the server's JSON; None if it does not exist. Called if the project has no mark.
    """
    project = find_marked_project(client, project_id)
    if project.mark.names_owner:
        return project
    role = find_role()
    if role is None:
        return project
    try:
        mark = parse_description(role.get("description"))
    except UnreadableMarkError:
        mark = project.mark  # a user wrote the description
    consents = (Consent(ConsentKind.ROLE, f"{project_id}/{role['name']}"), *project.consents)
    return MarkedObject(f"role `{role['name']}` in project {project_id} at {client.endpoint}", mark, consents)


def _to_marked_warehouse(client: Client, warehouse: warehouses.WarehouseResponse, mark: OwnershipMark) -> MarkedObject:
    project_id, name = str(warehouse["project-id"]), str(warehouse["name"])
    consents = (*list_warehouse_consents(project_id, name), Consent(ConsentKind.PROJECT, project_id))
    return MarkedObject(f"warehouse `{name}` in project {project_id} at {client.endpoint}", mark, consents)


def _to_marked_project(client: Client, project_id: str, mark: OwnershipMark, *consents: Consent) -> MarkedObject:
    all_consents = (Consent(ConsentKind.PROJECT, project_id), *consents)
    return MarkedObject(f"project {project_id} at {client.endpoint}", mark, all_consents)
