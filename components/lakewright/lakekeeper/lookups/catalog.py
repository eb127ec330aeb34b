"""Look-ups of warehouses and of what they hold: namespaces, the catalog's configuration, deleted tables."""

from datetime import datetime
from typing import Any, Literal

from lakewright.lakekeeper.api.catalog import catalog_config, namespaces, tabulars
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import (
    InvalidLookupError,
    NotFoundError,
    NothingFoundError,
    UnsupportedServerError,
)
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.lookups.base import LookupResult, Server, as_output, listed, reach
from lakewright.names.types import namespace_parts


class WarehouseInfo(LookupResult):
    """A warehouse. `storage` has the properties of a declaration's `storage`, as the server keeps them."""

    warehouse_id: str
    name: str
    project_id: str
    active: bool
    protected: bool
    storage: dict[str, Any]
    credential_type: str | None
    """Kind of its storage credential, if it has one and the server tells; never more of it."""
    soft_delete_seconds: int | None
    """How long a dropped table can be brought back; None if it cannot."""
    allowed_format_versions: tuple[int, ...]
    """Empty where the server is too old to tell."""
    default_format_version: int | None
    updated_at: datetime | None


class NamespaceEntry(LookupResult):
    """A namespace in a list."""

    warehouse_id: str
    namespace_id: str
    name: str
    """Its levels, outermost first, with dots between."""
    protected: bool


class NamespaceInfo(NamespaceEntry):
    """A namespace with its properties, without those that belong to the server."""

    properties: dict[str, str]
    location: str | None


class CatalogInfo(LookupResult):
    """What clients of the Iceberg REST catalog are told at first. Holds no credential."""

    uri: str
    prefix: str
    """Id of the warehouse, which stands in the paths of all further calls."""
    defaults: dict[str, str]
    overrides: dict[str, str]
    endpoints: tuple[str, ...]


class DeletedTable(LookupResult):
    """A table or view that was dropped and can still be brought back."""

    tabular_id: str
    kind: str
    """`table`, `view` or `generic-table`."""
    namespace: str
    name: str
    deleted_at: datetime
    expires_at: datetime


def get_warehouses(
    *, server: Server, project_id: str, status: Literal["active", "inactive", "any"] = "any"
) -> list[WarehouseInfo]:
    """Return the warehouses of a project that this identity may see, by name.

    Servers before 0.14 list active ones only, so that `any` leaves inactive ones out there.

    Raises:
        UnsupportedServerError: For `inactive` on a server that does not list those.
    """
    client = reach(server)
    if status == "inactive" and not client.server().lists_inactive_warehouses:
        raise UnsupportedServerError(
            f"inactive warehouses are listed by Lakekeeper 0.14 and newer; {client.endpoint} runs"
            f" {client.server().version_text}. Look each of them up by `warehouse_id`."
        )
    found = [_warehouse(one) for one in warehouses.list_all(client, project_id)]
    wanted = {"active": {True}, "inactive": {False}, "any": {True, False}}[status]
    return sorted((one for one in found if one.active in wanted), key=lambda one: one.name)


def get_warehouse(
    *, server: Server, warehouse_id: str | None = None, project_id: str | None = None, name: str | None = None
) -> WarehouseInfo:
    """Return a warehouse by its id, or by project and name. Raises NothingFoundError.

    An inactive one is found by its id on every server, by its name from 0.14 on.
    """
    client = reach(server)
    if warehouse_id is not None:
        found = warehouses.get(client, warehouse_id)
        if found is None:
            raise NothingFoundError(
                f"warehouse {warehouse_id} is not at {client.endpoint}, or hidden from this identity"
            )
        return _warehouse(found)
    if project_id is None or name is None:
        raise InvalidLookupError("a warehouse is looked up by `warehouse_id`, or by `project_id` and `name`")
    there = warehouses.list_all(client, project_id)
    found = next((one for one in there if str(one["name"]).casefold() == name.casefold()), None)
    if found is None:
        missing = NothingFoundError(
            f"warehouse `{name}` is not in project {project_id} at {client.endpoint}, or hidden from this identity."
            f" There are: {listed(str(one['name']) for one in there)}."
        )
        if not client.server().lists_inactive_warehouses:
            missing.add(f"Inactive ones are found by `warehouse_id` alone, since {client.server().unlisted}.")
        raise missing
    return _warehouse(found)


def get_namespaces(
    *, server: Server, warehouse_id: str, parent: str | None = None, recursive: bool = False
) -> list[NamespaceEntry]:
    """The namespaces of an active warehouse, one level below `parent`; with `recursive`, all that are below it."""
    client = reach(server)
    try:
        found = namespaces.children(client, warehouse_id, tuple(namespace_parts(parent)) if parent else None)
    except NotFoundError:
        raise nothing(client, warehouse_id, parent) from None
    if not found:
        require_active(client, warehouse_id)
    entries: list[NamespaceEntry] = []
    for one in sorted(found, key=lambda one: one.path):
        name = ".".join(one.path)
        entry = NamespaceEntry(
            warehouse_id=warehouse_id, namespace_id=one.namespace_id, name=name, protected=bool(one.protected)
        )
        entries.append(entry)
        if recursive:
            entries += get_namespaces(server=server, warehouse_id=warehouse_id, parent=name, recursive=True)
    return entries


def get_namespace(*, server: Server, warehouse_id: str, name: str) -> NamespaceInfo:
    """A namespace of an active warehouse by its levels with dots between. Raises NothingFoundError."""
    client = reach(server)
    try:
        found = namespaces.get(client, warehouse_id, tuple(namespace_parts(name)))
    except NotFoundError:
        raise nothing(client, warehouse_id, name) from None
    if found is None:
        raise nothing(client, warehouse_id, name)
    properties: dict[str, str] = found["properties"]
    namespace_id = namespaces.id_of(found)
    return NamespaceInfo(
        warehouse_id=warehouse_id,
        namespace_id=namespace_id,
        name=".".join(found["namespace"]),
        protected=namespaces.is_protected(client, warehouse_id, namespace_id),
        properties={key: value for key, value in properties.items() if key not in namespaces.SERVER_OWNED},
        location=properties.get("location"),
    )


def get_catalog_config(*, server: Server, warehouse: str, project_id: str | None = None) -> CatalogInfo:
    """The catalog's configuration for an active warehouse, by its name; in the default project unless one is named."""
    client = reach(server)
    try:
        found = catalog_config.get(client, warehouse, project_id)
    except NotFoundError:
        where = f"project {project_id}" if project_id else "the default project"
        raise NothingFoundError(
            f"no active warehouse `{warehouse}` is in {where} at {client.endpoint}, or it is hidden from this identity"
        ) from None
    defaults, overrides = dict(found["defaults"]), dict(found["overrides"])
    return CatalogInfo(
        uri=overrides.get("uri") or f"{client.endpoint}/catalog",
        prefix=str(defaults.get("prefix") or overrides.get("prefix") or ""),
        defaults=defaults,
        overrides=overrides,
        endpoints=tuple(found.get("endpoints") or ()),
    )


def get_deleted_tables(*, server: Server, warehouse_id: str, namespace: str | None = None) -> list[DeletedTable]:
    """The soft-deleted tables and views of an active warehouse, perhaps of one namespace alone; last ones first."""
    client = reach(server)
    try:
        tables = deleted_tables(client, warehouse_id)
    except NotFoundError:
        raise nothing(client, warehouse_id, None) from None
    if not tables:
        require_active(client, warehouse_id)
    return [one for one in tables if namespace is None or one.namespace.casefold() == namespace.casefold()]


def deleted_tables(client: Client, warehouse_id: str) -> list[DeletedTable]:
    """The soft-deleted tables and views of an active warehouse, last ones first. Raises NotFoundError."""
    tables = [
        DeletedTable(
            tabular_id=one["id"],
            kind=one.get("typ") or "table",
            namespace=".".join(one["namespace"]),
            name=one["name"],
            deleted_at=one["deleted-at"],
            expires_at=one["expiration-date"],
        )
        for one in tabulars.deleted(client, warehouse_id)
    ]
    return sorted(tables, key=lambda one: (one.deleted_at, one.name), reverse=True)


def _warehouse(found: warehouses.WarehouseResponse) -> WarehouseInfo:
    """Return a response as a result: properties of the same name, and those that are computed."""
    profile: dict[str, Any] = found["storage-profile"]
    credential: dict[str, Any] = found.get("storage-credential-type") or {}
    same = {name: found.get(name.replace("_", "-")) for name in WarehouseInfo.model_fields}
    computed = {
        "warehouse_id": warehouses.id_of(found),
        "name": found["name"],
        "project_id": found["project-id"],
        "active": found["status"] == "active",
        "protected": bool(found.get("protected")),
        "storage": {key.replace("-", "_"): value for key, value in profile.items() if value is not None},
        "credential_type": credential.get("credential-type"),
        "soft_delete_seconds": found["delete-profile"].get("expiration-seconds"),
        "allowed_format_versions": tuple(found.get("allowed-format-versions") or ()),
    }
    return WarehouseInfo.model_validate(same | computed)


def require_active(client: Client, warehouse_id: str) -> None:
    """Raise NothingFoundError for an inactive warehouse.

    For a minute after a warehouse was deactivated, servers answer lists with nothing instead of 404.
    """
    warehouse = warehouses.get(client, warehouse_id)
    if warehouse is None or warehouse["status"] != "active":
        raise nothing(client, warehouse_id, None)


def nothing(client: Client, warehouse_id: str, namespace: str | None) -> Exception:
    """Why something in a warehouse is not found: an inactive warehouse hides all that is in it."""
    warehouse = warehouses.get(client, warehouse_id)
    if warehouse is None:
        return NothingFoundError(f"warehouse {warehouse_id} is not at {client.endpoint}, or hidden from this identity")
    where = f"warehouse `{warehouse['name']}` ({warehouse_id}) at {client.endpoint}"
    if warehouse["status"] != "active":
        return NothingFoundError(f"{where} is inactive, so what it holds cannot be seen. Activate it first.")
    return NothingFoundError(f"namespace `{namespace}` is not in {where}, or hidden from this identity")


get_warehouse_output = as_output(get_warehouse)
get_warehouses_output = as_output(get_warehouses)
get_namespace_output = as_output(get_namespace)
get_namespaces_output = as_output(get_namespaces)
get_catalog_config_output = as_output(get_catalog_config)
get_deleted_tables_output = as_output(get_deleted_tables)
