"""Objects of grants as programs name them: by name where the server's ids change and names do not."""

from typing import Annotated, Literal

from pydantic import Field, Tag

from lakewright.lakekeeper.api.catalog import namespaces, tabulars
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.privileges import Object
from lakewright.lakekeeper.api.management import grants, project_record, roles, warehouses
from lakewright.lakekeeper.provider.errors import InactiveWarehouseError, TargetMissingError
from lakewright.lakekeeper.provider.inputs import Declared, discriminate_by_type
from lakewright.names.types import NamespacePath, ProjectId, RoleId, namespace_parts
from lakewright.ownership.marked_object import MarkedObject

TabularType = Literal["table", "view", "generic-table"]


class OnServer(Declared):
    """The server itself."""

    type: Literal["server"]
    """`server`."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return "server"


class OnProject(Declared):
    """A project."""

    type: Literal["project"]
    """`project`."""
    project_id: ProjectId
    """Id of the project."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"project/{self.project_id}"


class OnRole(Declared):
    """A role itself, to grant its ownership."""

    type: Literal["role"]
    """`role`."""
    project_id: ProjectId
    """Project of the role."""
    role_id: RoleId
    """Id of the role."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"role/{self.role_id}"


class OnTag(Declared):
    """A tag of a project, to allow its use. Requires 0.14."""

    type: Literal["tag"]
    """`tag`."""
    project_id: ProjectId
    """Project of the tag."""
    name: Annotated[str, Field(min_length=1)]
    """Name of the tag."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"project/{self.project_id}/tag/{self.name.casefold()}"


class OnWarehouse(Declared):
    """A warehouse and its contents."""

    type: Literal["warehouse"]
    """`warehouse`."""
    warehouse_id: str
    """Id of the warehouse."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"warehouse/{self.warehouse_id}"


class OnNamespace(Declared):
    """A namespace and its contents."""

    type: Literal["namespace"]
    """`namespace`."""
    warehouse_id: str
    """Id of its warehouse."""
    namespace: NamespacePath
    """Its levels, joined by dots."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"warehouse/{self.warehouse_id}/namespace/{self.namespace.casefold()}"


class OnTabular(Declared):
    """A table, view or generic table (not an Iceberg table; requires 0.13)."""

    type: TabularType
    """`table`, `view` or `generic-table`."""
    warehouse_id: str
    """Id of its warehouse."""
    namespace: NamespacePath
    """Its namespace."""
    name: Annotated[str, Field(min_length=1)]
    """Its name."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"warehouse/{self.warehouse_id}/{self.type}/{self.namespace.casefold()}.{self.name.casefold()}"


GrantTarget = Annotated[
    Annotated[OnServer, Tag("server")]
    | Annotated[OnProject, Tag("project")]
    | Annotated[OnRole, Tag("role")]
    | Annotated[OnTag, Tag("tag")]
    | Annotated[OnWarehouse, Tag("warehouse")]
    | Annotated[OnNamespace, Tag("namespace")]
    | Annotated[OnTabular, Tag("table")]
    | Annotated[OnTabular, Tag("view")]
    | Annotated[OnTabular, Tag("generic-table")],
    discriminate_by_type(
        "server", "project", "role", "tag", "warehouse", "namespace", "table", "view", "generic-table"
    ),
]
"""An object such as `{"type": "warehouse", "warehouse_id": ...}`."""


def resolve(client: Client, on: GrantTarget) -> Object | None:
    """Return the object by the server's ids, from lists that a refresh shares; None if it does not exist.

    Raises:
        InactiveWarehouseError: The warehouse is inactive, which hides the object.
        UnsupportedServerError: The server's version does not have this kind of object.
    """
    client.server().require_kind(on.type)
    match on:
        case OnServer():
            return Object("server")
        case OnProject():
            return Object("project", project_id=on.project_id)
        case OnRole():
            return Object("role", on.role_id, project_id=on.project_id)
        case OnTag():
            return _tag(client, on)
        case OnWarehouse():
            return _add_project(client, Object("warehouse", warehouse_id=on.warehouse_id))
        case OnNamespace() | OnTabular():
            return _inside(client, on)


def build_object(client: Client, on: GrantTarget, object_id: str) -> Object | None:
    """Return an object with an id, of the kind and in the place of a target that programs name.

    None for a target that programs declare by its id, and if the warehouse does not exist.
    """
    match on:
        case OnTag():
            return Object("tag", object_id, project_id=on.project_id)
        case OnNamespace() | OnTabular():
            return _add_project(client, Object(on.type, object_id, warehouse_id=on.warehouse_id))
        case _:
            return None


def _tag(client: Client, on: OnTag) -> Object | None:
    key = (client, "tag", on.project_id, on.name.casefold())
    tag_id = client.lists.get_cached(key, lambda: grants.find_tag_id(client, on.project_id, on.name))
    return Object("tag", tag_id, project_id=on.project_id) if tag_id else None


def _inside(client: Client, on: OnNamespace | OnTabular) -> Object | None:
    object_id = _namespace_id(client, on) if isinstance(on, OnNamespace) else _tabular_id(client, on)
    if object_id:
        return build_object(client, on, object_id)
    if client.is_active(on.warehouse_id) is False:
        raise InactiveWarehouseError(
            f"{on} at {client.endpoint} cannot be seen while its warehouse is inactive. Set `active: true` and"
            " run `up` first.",
            on.warehouse_id,
        )
    return None


def find_marked(client: Client, on: GrantTarget) -> MarkedObject | None:
    """Return the object whose mark covers an object; None for the server, and if the warehouse does not exist.

    That is its project, or in a shared project its warehouse or role.

    Raises the errors of `record_roles.read_mark`.
    """
    match on:
        case OnServer():
            return None
        case OnProject() | OnTag():
            return project_record.find_marked_project(client, on.project_id)
        case OnRole():
            return project_record.find_marked_role(
                client, on.project_id, lambda: roles.get_cached(client, on.project_id, on.role_id)
            )
        case OnWarehouse() | OnNamespace() | OnTabular():
            return project_record.find_marked_warehouse(client, on.warehouse_id)


def resolve_now(client: Client, on: GrantTarget) -> Object | None:
    """Return what `resolved` returns, read from the server now."""
    client.lists.forget()
    return resolve(client, on)


def require(client: Client, on: GrantTarget) -> Object:
    """Return an object that must exist, read from the server now.

    Raises:
        TargetMissingError: The object does not exist.
        InactiveWarehouseError: The warehouse is inactive, which hides the object.
    """
    target = resolve_now(client, on)
    if target is None:
        raise make_missing_error(client, on)
    return target


def make_missing_error(client: Client, on: GrantTarget) -> TargetMissingError:
    """Return the error for an object that does not exist."""
    return TargetMissingError(
        f"{on} does not exist at {client.endpoint}, so it cannot have grants. Declare it and let the grant depend on"
        " it, or create it first."
    )


def _add_project(client: Client, target: Object) -> Object | None:
    """Add the project of the warehouse, which the Grants API requires."""
    if client.server().keeps_tuples or not client.server().has_grants_api:
        return target
    warehouse = client.lists.get_cached(
        (client, "warehouse", target.warehouse_id), lambda: warehouses.get(client, target.warehouse_id)
    )
    if warehouse is None:
        return None
    return Object(target.kind, target.object_id, str(warehouse["project-id"]), target.warehouse_id)


def _namespace_id(client: Client, on: OnNamespace) -> str | None:
    path = tuple(namespace_parts(on.namespace))
    shared_entry = namespaces.get_cached(client, on.warehouse_id, path)
    if shared_entry and shared_entry.namespace_id:
        return shared_entry.namespace_id
    namespace = namespaces.get(client, on.warehouse_id, path)
    return namespaces.read_id(namespace) if namespace else None


def _tabular_id(client: Client, on: OnTabular) -> str | None:
    path = tuple(namespace_parts(on.namespace))
    ids = client.lists.get_cached(
        (client, "ids", on.type, on.warehouse_id, on.namespace.casefold()),
        lambda: tabulars.ids(client, on.warehouse_id, path, on.type),
    )
    return ids.get(on.name.casefold())
