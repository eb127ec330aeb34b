"""Namespaces: create, list, read, properties, drop."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.catalog.call import Listing
from lakewright_sandbox.lakekeeper.catalog.idempotency import Idempotency
from lakewright_sandbox.lakekeeper.catalog.locations import check_form, namespace_location, normalize_location
from lakewright_sandbox.lakekeeper.catalog.namespace_drop import drop_namespace
from lakewright_sandbox.lakekeeper.catalog.scope import NamespacePath, WarehouseId
from lakewright_sandbox.lakekeeper.database.lookups import (
    find_namespace,
    find_warehouse,
    looks_empty,
    parse_namespace,
    path_key,
)
from lakewright_sandbox.lakekeeper.database.models import NamespaceRow
from lakewright_sandbox.lakekeeper.protocol.clock import new_id
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import Body, Flag, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.server.paging import ListPage
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, Server
from lakewright_sandbox.lakekeeper.storage.profiles import load_profile

MAX_DEPTH = 5
OWN_PROPERTIES = ("namespace_id", "managed_access")

router = APIRouter(prefix="/catalog/v1/{prefix}/namespaces")


class CreateNamespace(Body):
    """Request to create a namespace."""

    namespace: list[str]
    properties: dict[str, str] | None = None


class UpdateProperties(Body):
    """Request to change a namespace's properties."""

    removals: list[str] | None = Field(default=None)
    updates: dict[str, str] | None = Field(default=None)


@router.get("")
def list_namespaces(
    server: Server,
    warehouse: WarehouseId,
    listing: Listing,
    parent: str | None = None,
) -> Response:
    """List the namespaces below a parent, or at the top level."""
    page = ListPage.from_request(server.settings, listing.page_token, listing.page_size, whole=True)
    with server.database.read() as session:
        if not parent and looks_empty(session, warehouse):
            return json_response({"namespaces": []})
        find_warehouse(session, warehouse, active=True)
        above = find_namespace(session, warehouse, parse_namespace(parent)).id if parent else None
        query = select(NamespaceRow).where(
            NamespaceRow.warehouse_id == warehouse, NamespaceRow.parent_id.is_not_distinct_from(above)
        )
        rows = session.scalars(page.select(query, NamespaceRow.created_at, NamespaceRow.id)).all()
        token = page.next_token(rows)
        rows = server.authorizer.filter_visible(session, rows, lambda row: Target("namespace", row.id))
    body: dict[str, Any] = {"namespaces": [row.path for row in rows]}
    if token:
        body["next-page-token"] = token
    if listing.uuids:
        body["namespace-uuids"] = [row.id for row in rows]
    if listing.protection:
        body["protection-status"] = [row.protected for row in rows]
    return json_response(body)


@router.post("")
def create_namespace(
    server: Server,
    warehouse: WarehouseId,
    idempotency: Idempotency,
    body: Annotated[CreateNamespace, read_body(CreateNamespace)],
) -> Response:
    """Create a namespace."""
    return idempotency.run(lambda: json_response(_create(server, warehouse, body)))


def _create(server: Lakekeeper, warehouse_id: str, body: CreateNamespace) -> dict[str, Any]:
    path, requested_properties = body.namespace, body.properties or {}
    check_path(server, path)
    _check_keys(requested_properties)
    properties = {key: value for key, value in requested_properties.items() if key not in OWN_PROPERTIES}
    row_id, now = new_id(), server.clock.now()
    try:
        with server.database.write() as session:
            warehouse = find_warehouse(session, warehouse_id, active=True)
            parent = find_namespace(session, warehouse_id, path[:-1]) if len(path) > 1 else None
            profile = load_profile(warehouse.storage_profile)
            if "location" in properties:
                check_form(properties["location"], "ConfigLocationParseError")
                properties["location"] = f"{normalize_location(profile, properties['location'])}/"
            else:
                properties["location"] = namespace_location(
                    profile, parent, path[-1], row_id, flat=server.settings.is_at_least("0.13")
                )
            row = NamespaceRow(
                id=row_id,
                warehouse_id=warehouse_id,
                parent_id=parent.id if parent else None,
                path=[*(parent.path if parent else []), path[-1]],
                path_key=path_key(path),
                properties=properties,
                protected=False,
                created_at=now,
                updated_at=None,
            )
            session.add(row)
            session.flush()
            server.authorizer.add_owner(session, Target("namespace", row_id))
    except IntegrityError:
        message = f"Namespace name '{'.'.join(path)}' already exist in warehouse '{warehouse_id}'"
        raise ApiError(409, "AlreadyExistsException", message, "Error creating Namespace in catalog") from None
    return {"namespace": path, "properties": _properties(row)}


@router.get("/{namespace}")
def get_namespace(
    server: Server,
    warehouse: WarehouseId,
    namespace: NamespacePath,
    *,
    return_uuid: Annotated[Flag, Query(alias="returnUuid")] = False,
) -> Response:
    """Return a namespace. From 0.12 on its name is spelled as requested."""
    with server.database.read() as session:
        find_warehouse(session, warehouse, active=True)
        row = find_namespace(session, warehouse, namespace)
    name = list(namespace) if server.settings.is_at_least("0.12") else row.path
    body: dict[str, Any] = {"namespace": name, "properties": _properties(row)}
    if return_uuid:
        body["namespace-uuid"] = row.id
    return json_response(body)


@router.head("/{namespace}")
def namespace_exists(server: Server, warehouse: WarehouseId, namespace: NamespacePath) -> Response:
    """Respond with 204 if a namespace exists."""
    with server.database.read() as session:
        find_warehouse(session, warehouse, active=True)
        find_namespace(session, warehouse, namespace)
    return empty()


@router.post("/{namespace}/properties")
def update_properties(
    server: Server,
    warehouse: WarehouseId,
    namespace: NamespacePath,
    idempotency: Idempotency,
    body: Annotated[UpdateProperties, read_body(UpdateProperties)],
) -> Response:
    """Change a namespace's properties."""
    updates, removals = body.updates or {}, body.removals or []
    _check_keys(updates)
    if "location" in updates:
        stack = f'Location: "{updates["location"]}"'
        raise ApiError(400, "LocationCannotBeUpdated", "Namespace property `location` cannot be updated.", stack)
    if "location" in removals:
        raise ApiError(400, "LocationCannotBeRemoved", "Namespace property `location` cannot be removed.")
    updates = {key: value for key, value in updates.items() if key not in OWN_PROPERTIES}

    def update() -> Response:
        with server.database.write() as session:
            find_warehouse(session, warehouse, active=True)
            row = find_namespace(session, warehouse, namespace)
            before = row.properties
            removed = [key for key in removals if key in before]
            row.properties = {key: value for key, value in before.items() if key not in removed} | updates
            row.updated_at = server.clock.now()
        updated = [key for key, value in updates.items() if before.get(key) != value]
        missing = [key for key in removals if key not in before]
        body: dict[str, Any] = {"updated": updated, "removed": removed}
        return json_response(body | ({"missing": missing} if missing else {}))

    return idempotency.run(update)


@router.delete("/{namespace}")
def delete_namespace(
    server: Server,
    warehouse: WarehouseId,
    namespace: NamespacePath,
    idempotency: Idempotency,
    *,
    recursive: Flag = False,
    force: Flag = False,
    purge: Flag = False,
) -> Response:
    """Drop a namespace."""

    def drop() -> Response:
        drop_namespace(server, warehouse, namespace, recursive=recursive, force=force, purge=purge)
        return empty()

    return idempotency.run(drop)


def _properties(row: NamespaceRow) -> dict[str, str]:
    return {**row.properties, "namespace_id": row.id}


def check_path(server: Lakekeeper, path: list[str]) -> None:
    """Raise 400 for a path that no namespace may have."""
    detail = f"Namespace: NamespaceIdent({path})"
    if not path:
        raise ApiError(400, "InvalidNamespace", "Namespace must have at least one part.", detail)
    if len(path) > MAX_DEPTH:
        raise ApiError(400, "NamespaceDepthExceeded", f"Namespace exceeds maximum depth of {MAX_DEPTH}", detail)
    if any("." in part for part in path):
        raise ApiError(400, "NamespacePartContainsDot", "Namespace parts cannot contain '.'", detail)
    if any(not part for part in path):
        raise ApiError(400, "NamespacePartEmpty", "Namespace parts cannot be empty", detail)
    if any("+" in part for part in path):
        raise ApiError(400, "InvalidNamespace", "Namespace cannot contain '+' character.", detail)
    if path[0].casefold() in server.settings.reserved_namespaces:
        raise ApiError(400, "ReservedNamespace", "Namespace is reserved for internal use.")


def _check_keys(properties: dict[str, str]) -> None:
    for key in properties:
        if key != key.lower():
            raise ApiError(400, f"{key}NotLowercase", f"The property '{key}' is not all lowercase.")
