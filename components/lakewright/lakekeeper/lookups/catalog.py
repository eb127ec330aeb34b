"""Lookups of namespaces, the catalog's configuration and deleted tables."""

from datetime import datetime

from lakewright.lakekeeper.api.catalog import namespaces, tabulars
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import (
    NotFoundError,
    NothingFoundError,
)
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.server.lookup_base import LookupResult, Server, as_output, reach
from lakewright.names.types import namespace_parts


class NamespaceEntry(LookupResult):
    """A namespace in a list."""

    warehouse_id: str
    namespace_id: str
    name: str
    """Levels of the namespace, outermost first, separated by dots."""
    protected: bool


class NamespaceInfo(NamespaceEntry):
    """A namespace with its properties. Properties that belong to the server are left out."""

    properties: dict[str, str]
    location: str | None


class CatalogInfo(LookupResult):
    """Configuration that the Iceberg REST catalog returns to clients. Contains no credentials."""

    uri: str
    prefix: str
    """Id of the warehouse, which is part of the paths of all other calls."""
    defaults: dict[str, str]
    overrides: dict[str, str]
    endpoints: tuple[str, ...]


class DeletedTable(LookupResult):
    """A dropped table or view that can still be restored."""

    tabular_id: str
    kind: str
    """`table`, `view` or `generic-table`."""
    namespace: str
    name: str
    deleted_at: datetime
    expires_at: datetime


def get_namespaces(
    *, server: Server, warehouse_id: str, parent: str | None = None, recursive: bool = False
) -> list[NamespaceEntry]:
    """Return the namespaces of an active warehouse one level below `parent`, or at all levels with `recursive`."""
    client = reach(server)
    try:
        children = namespaces.list_children(client, warehouse_id, tuple(namespace_parts(parent)) if parent else None)
    except NotFoundError:
        raise make_nothing_error(client, warehouse_id, parent) from None
    if not children:
        require_active(client, warehouse_id)
    entries: list[NamespaceEntry] = []
    for namespace in sorted(children, key=lambda namespace: namespace.path):
        name = ".".join(namespace.path)
        entry = NamespaceEntry(
            warehouse_id=warehouse_id,
            namespace_id=namespace.namespace_id,
            name=name,
            protected=bool(namespace.protected),
        )
        entries.append(entry)
        if recursive:
            entries += get_namespaces(server=server, warehouse_id=warehouse_id, parent=name, recursive=True)
    return entries


def get_namespace(*, server: Server, warehouse_id: str, name: str) -> NamespaceInfo:
    """Return a namespace of an active warehouse by its name, whose levels are separated by dots.

    Raises:
        NothingFoundError: If there is no such namespace, the warehouse is inactive, or either is hidden.
    """
    client = reach(server)
    try:
        namespace = namespaces.get(client, warehouse_id, tuple(namespace_parts(name)))
    except NotFoundError:
        raise make_nothing_error(client, warehouse_id, name) from None
    if namespace is None:
        raise make_nothing_error(client, warehouse_id, name)
    properties: dict[str, str] = namespace["properties"]
    namespace_id = namespaces.read_id(namespace)
    return NamespaceInfo(
        warehouse_id=warehouse_id,
        namespace_id=namespace_id,
        name=".".join(namespace["namespace"]),
        protected=namespaces.is_protected(client, warehouse_id, namespace_id),
        properties={key: value for key, value in properties.items() if key not in namespaces.SERVER_OWNED},
        location=properties.get("location"),
    )


def get_catalog_config(*, server: Server, warehouse: str, project_id: str | None = None) -> CatalogInfo:
    """Return the catalog's configuration for an active warehouse of a project; by default, of the default project."""
    client = reach(server)
    try:
        config = namespaces.get_catalog_config(client, warehouse, project_id)
    except NotFoundError:
        location = f"project {project_id}" if project_id else "the default project"
        raise NothingFoundError(
            f"no active warehouse `{warehouse}` is in {location} at {client.endpoint}, or it is hidden from"
            " this identity"
        ) from None
    defaults, overrides = dict(config["defaults"]), dict(config["overrides"])
    return CatalogInfo(
        uri=overrides.get("uri") or f"{client.endpoint}/catalog",
        prefix=str(defaults.get("prefix") or overrides.get("prefix") or ""),
        defaults=defaults,
        overrides=overrides,
        endpoints=tuple(config.get("endpoints") or ()),
    )


def get_deleted_tables(*, server: Server, warehouse_id: str, namespace: str | None = None) -> list[DeletedTable]:
    """Return the soft-deleted tables and views of an active warehouse or of a namespace in it; latest first."""
    client = reach(server)
    try:
        tables = list_deleted_tables(client, warehouse_id)
    except NotFoundError:
        raise make_nothing_error(client, warehouse_id, None) from None
    if not tables:
        require_active(client, warehouse_id)
    return [table for table in tables if namespace is None or table.namespace.casefold() == namespace.casefold()]


def list_deleted_tables(client: Client, warehouse_id: str) -> list[DeletedTable]:
    """Return the soft-deleted tables and views of an active warehouse, latest first. Raises NotFoundError."""
    tables = [
        DeletedTable(
            tabular_id=tabular["id"],
            kind=tabular.get("typ") or "table",
            namespace=".".join(tabular["namespace"]),
            name=tabular["name"],
            deleted_at=tabular["deleted-at"],
            expires_at=tabular["expiration-date"],
        )
        for tabular in tabulars.list_deleted(client, warehouse_id)
    ]
    return sorted(tables, key=lambda table: (table.deleted_at, table.name), reverse=True)


def require_active(client: Client, warehouse_id: str) -> None:
    """Raise NothingFoundError for an inactive warehouse.

    For a minute after a warehouse was deactivated, servers return empty lists instead of 404.
    """
    warehouse = warehouses.get(client, warehouse_id)
    if warehouse is None or warehouse["status"] != "active":
        raise make_nothing_error(client, warehouse_id, None)


def make_nothing_error(client: Client, warehouse_id: str, namespace: str | None) -> Exception:
    """Return the error for a missing warehouse or namespace. An inactive warehouse hides its contents."""
    warehouse = warehouses.get(client, warehouse_id)
    if warehouse is None:
        return NothingFoundError(f"warehouse {warehouse_id} is not at {client.endpoint}, or hidden from this identity")
    title = f"warehouse `{warehouse['name']}` ({warehouse_id}) at {client.endpoint}"
    if warehouse["status"] != "active":
        return NothingFoundError(f"{title} is inactive, so its contents cannot be seen. Activate it first.")
    return NothingFoundError(f"namespace `{namespace}` is not in {title}, or hidden from this identity")


get_namespace_output = as_output(get_namespace)
get_namespaces_output = as_output(get_namespaces)
get_catalog_config_output = as_output(get_catalog_config)
get_deleted_tables_output = as_output(get_deleted_tables)
