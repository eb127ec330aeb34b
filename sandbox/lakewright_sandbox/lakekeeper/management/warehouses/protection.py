"""Protection of namespaces, tables, views and generic tables against deletion."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.database.lookups import find_tabular_by_id, find_warehouse
from lakewright_sandbox.lakekeeper.database.models import NamespaceRow, TabularRow
from lakewright_sandbox.lakekeeper.management.warehouses.warehouses import Protection
from lakewright_sandbox.lakekeeper.protocol.clock import optional_timestamp
from lakewright_sandbox.lakekeeper.protocol.errors import namespace_missing, tabular_missing
from lakewright_sandbox.lakekeeper.protocol.requests import read_body
from lakewright_sandbox.lakekeeper.protocol.responses import json_response
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, Server

router = APIRouter(prefix="/management/v1/warehouse/{warehouse_id}")


def _find(session: Session, warehouse_id: UUID, kind: str, object_id: UUID) -> NamespaceRow | TabularRow:
    find_warehouse(session, str(warehouse_id), active=True)
    if kind == "namespace":
        namespace = session.get(NamespaceRow, str(object_id))
        if namespace is None or namespace.warehouse_id != str(warehouse_id):
            raise namespace_missing(str(object_id), str(warehouse_id))
        return namespace
    tabular = find_tabular_by_id(session, warehouse_id, object_id)
    if tabular is None or tabular.kind != kind:
        raise tabular_missing(kind)
    return tabular


def _get(server: Lakekeeper, warehouse_id: UUID, kind: str, object_id: UUID) -> Response:
    with server.database.read() as session:
        row = _find(session, warehouse_id, kind, object_id)
    return json_response({"protected": row.protected, "updated_at": optional_timestamp(row.updated_at)})


def _set(server: Lakekeeper, warehouse_id: UUID, kind: str, object_id: UUID, body: Protection) -> Response:
    with server.database.write() as session:
        row = _find(session, warehouse_id, kind, object_id)
        row.protected, row.updated_at = body.protected, server.clock.now()
    return json_response({"protected": row.protected, "updated_at": optional_timestamp(row.updated_at)})


@router.get("/namespace/{namespace_id}/protection")
def get_namespace(server: Server, warehouse_id: UUID, namespace_id: UUID) -> Response:
    """Return whether a namespace is protected."""
    return _get(server, warehouse_id, "namespace", namespace_id)


@router.post("/namespace/{namespace_id}/protection")
def set_namespace(
    server: Server, warehouse_id: UUID, namespace_id: UUID, body: Annotated[Protection, read_body(Protection)]
) -> Response:
    """Set whether a namespace is protected."""
    return _set(server, warehouse_id, "namespace", namespace_id, body)


@router.get("/table/{table_id}/protection")
def get_table(server: Server, warehouse_id: UUID, table_id: UUID) -> Response:
    """Return whether a table is protected."""
    return _get(server, warehouse_id, "table", table_id)


@router.post("/table/{table_id}/protection")
def set_table(
    server: Server, warehouse_id: UUID, table_id: UUID, body: Annotated[Protection, read_body(Protection)]
) -> Response:
    """Set whether a table is protected."""
    return _set(server, warehouse_id, "table", table_id, body)


@router.get("/view/{view_id}/protection")
def get_view(server: Server, warehouse_id: UUID, view_id: UUID) -> Response:
    """Return whether a view is protected."""
    return _get(server, warehouse_id, "view", view_id)


@router.post("/view/{view_id}/protection")
def set_view(
    server: Server, warehouse_id: UUID, view_id: UUID, body: Annotated[Protection, read_body(Protection)]
) -> Response:
    """Set whether a view is protected."""
    return _set(server, warehouse_id, "view", view_id, body)


@router.get("/generic-table/{generic_table_id}/protection")
def get_generic_table(server: Server, warehouse_id: UUID, generic_table_id: UUID) -> Response:
    """Return whether a generic table is protected."""
    return _get(server, warehouse_id, "generic-table", generic_table_id)


@router.post("/generic-table/{generic_table_id}/protection")
def set_generic_table(
    server: Server, warehouse_id: UUID, generic_table_id: UUID, body: Annotated[Protection, read_body(Protection)]
) -> Response:
    """Set whether a generic table is protected."""
    return _set(server, warehouse_id, "generic-table", generic_table_id, body)
