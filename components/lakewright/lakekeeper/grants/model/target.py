"""What grants are on, as programs name it: by name where names stay the same while the server's ids come and go."""

from typing import Annotated, Literal

from pydantic import Field, Tag

from lakewright.lakekeeper.api.catalog import namespaces, tabulars
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.privileges import Object
from lakewright.lakekeeper.api.management import tags, warehouses
from lakewright.lakekeeper.provider.errors import InactiveWarehouseError, TargetMissingError
from lakewright.lakekeeper.provider.inputs import Declared, one_of
from lakewright.names.types import NamespacePath, ProjectId, RoleId, namespace_parts

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
    """A role itself, not what it may do: who owns it."""

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
    """A tag of a project: who may apply it. From 0.14 on."""

    type: Literal["tag"]
    """`tag`."""
    project_id: ProjectId
    """Project of the tag."""
    name: Annotated[str, Field(min_length=1)]
    """Its name."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"project/{self.project_id}/tag/{self.name.casefold()}"


class OnWarehouse(Declared):
    """A warehouse, and all in it."""

    type: Literal["warehouse"]
    """`warehouse`."""
    warehouse_id: str
    """Id of the warehouse."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"warehouse/{self.warehouse_id}"


class OnNamespace(Declared):
    """A namespace, and all in it."""

    type: Literal["namespace"]
    """`namespace`."""
    warehouse_id: str
    """Warehouse that it is in."""
    namespace: NamespacePath
    """Its levels with dots between."""

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"warehouse/{self.warehouse_id}/namespace/{self.namespace.casefold()}"


class OnTabular(Declared):
    """A table, a view, or a generic table (which is no Iceberg table; from 0.13 on)."""

    type: TabularType
    """`table`, `view` or `generic-table`."""
    warehouse_id: str
    """Warehouse that it is in."""
    namespace: NamespacePath
    """Namespace that it is in."""
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
    one_of("server", "project", "role", "tag", "warehouse", "namespace", "table", "view", "generic-table"),
]
"""`{"type": "warehouse", "warehouse_id": ...}` and the like."""


def resolved(client: Client, on: GrantTarget) -> Object | None:
    """Return the object by the server's ids, as a refresh sees it; None if it does not exist.

    Raises:
        InactiveWarehouseError: The warehouse is inactive, so that the object cannot be seen.
        UnsupportedServerError: The server's version has no such kind of object.
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
            return _in_warehouse(client, Object("warehouse", warehouse_id=on.warehouse_id))
        case OnNamespace() | OnTabular():
            return _inside(client, on)


def _tag(client: Client, on: OnTag) -> Object | None:
    key = (client, "tag", on.project_id, on.name.casefold())
    found = client.lists.get_cached(key, lambda: tags.id_of(client, on.project_id, on.name))
    return Object("tag", found, project_id=on.project_id) if found else None


def _inside(client: Client, on: OnNamespace | OnTabular) -> Object | None:
    kind = "namespace" if isinstance(on, OnNamespace) else on.type
    object_id = _namespace_id(client, on) if isinstance(on, OnNamespace) else _tabular_id(client, on)
    if object_id:
        return _in_warehouse(client, Object(kind, object_id, warehouse_id=on.warehouse_id))
    if client.is_active(on.warehouse_id) is False:
        raise InactiveWarehouseError(
            f"{on} at {client.endpoint} cannot be seen while its warehouse is inactive. Set `active: true` and"
            " run `up` first.",
            on.warehouse_id,
        )
    return None


def resolved_now(client: Client, on: GrantTarget) -> Object | None:
    """As `resolved`, at this moment."""
    client.lists.forget()
    return resolved(client, on)


def required(client: Client, on: GrantTarget) -> Object:
    """As `resolved_now`, of an object that has to be there. Raises TargetMissingError or InactiveWarehouseError."""
    found = resolved_now(client, on)
    if found is None:
        raise missing(client, on)
    return found


def missing(client: Client, on: GrantTarget) -> TargetMissingError:
    """That there is nothing to grant on."""
    return TargetMissingError(
        f"{on} is not at {client.endpoint}, so nothing can be granted on it. Declare it and let the grant depend on it,"
        " or have it made first."
    )


def _in_warehouse(client: Client, found: Object) -> Object | None:
    """Add the project of the warehouse, which the Grants API requires."""
    if client.server().keeps_tuples or not client.server().has_grants_api:
        return found
    warehouse = client.lists.get_cached(
        (client, "warehouse", found.warehouse_id), lambda: warehouses.get(client, found.warehouse_id)
    )
    if warehouse is None:
        return None
    return Object(found.kind, found.object_id, str(warehouse["project-id"]), found.warehouse_id)


def _namespace_id(client: Client, on: OnNamespace) -> str | None:
    path = tuple(namespace_parts(on.namespace))
    listed = namespaces.get_cached(client, on.warehouse_id, path)
    if listed and listed.namespace_id:
        return listed.namespace_id
    found = namespaces.get(client, on.warehouse_id, path)
    return namespaces.id_of(found) if found else None


def _tabular_id(client: Client, on: OnTabular) -> str | None:
    path = tuple(namespace_parts(on.namespace))
    ids = client.lists.get_cached(
        (client, "ids", on.type, on.warehouse_id, on.namespace.casefold()),
        lambda: tabulars.ids(client, on.warehouse_id, path, on.type),
    )
    return ids.get(on.name.casefold())
