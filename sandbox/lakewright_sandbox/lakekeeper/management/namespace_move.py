"""Move a namespace to another parent, to another name, or both. Its contents move with it; files remain in place."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.catalog.namespaces import check_path
from lakewright_sandbox.lakekeeper.database.lookups import find_namespace, find_warehouse, path_key
from lakewright_sandbox.lakekeeper.database.models import NamespaceRow, WarehouseRow
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError, namespace_missing
from lakewright_sandbox.lakekeeper.protocol.requests import Body, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import json_response
from lakewright_sandbox.lakekeeper.server.server import Server

router = APIRouter(prefix="/management/v1/warehouse/{warehouse_id}/namespace")


class MoveNamespace(Body):
    """Request to move a namespace."""

    model_config = ConfigDict(extra="forbid")

    destination: list[str]
    force: bool = False


@router.post("/{namespace_id}/move")
def move_namespace(
    server: Server, warehouse_id: UUID, namespace_id: UUID, body: Annotated[MoveNamespace, read_body(MoveNamespace)]
) -> Response:
    """Move a namespace. Moving it to its current place changes nothing, so that requests can be repeated."""
    check_path(server, body.destination)
    try:
        with server.database.write() as session:
            warehouse = find_warehouse(session, str(warehouse_id), active=True)
            row = session.get(NamespaceRow, str(namespace_id))
            if row is None or row.warehouse_id != warehouse.id:
                raise namespace_missing(str(namespace_id), warehouse.id)
            if body.destination != row.path:
                _check_movable(session, warehouse, row, body)
                parent = _parent(session, warehouse, body.destination)
                above = Target("namespace", parent.id) if parent else Target("warehouse", warehouse.id)
                server.authorizer.require(session, above, "accept_moved_namespace")
                row.parent_id = parent.id if parent else None
                row.path = [*(parent.path if parent else []), body.destination[-1]]
                row.path_key, row.updated_at = path_key(row.path), server.clock.now()
    except IntegrityError:
        message = f"Namespace name '{'.'.join(body.destination)}' already exist in warehouse '{warehouse_id}'"
        raise ApiError(409, "AlreadyExistsException", message, "Error moving Namespace in catalog") from None
    document: dict[str, Any] = {"namespace": row.path, "namespace-id": row.id, "parent-namespace-id": row.parent_id}
    return json_response(document)


def _parent(session: Session, warehouse: WarehouseRow, path: list[str]) -> NamespaceRow | None:
    return find_namespace(session, warehouse.id, path[:-1]) if len(path) > 1 else None


def _check_movable(session: Session, warehouse: WarehouseRow, row: NamespaceRow, body: MoveNamespace) -> None:
    name = ".".join(row.path)
    layout = warehouse.storage_profile["storage-layout"]
    if layout and layout["type"] == "full-hierarchy":
        message = "Namespaces cannot be moved in a warehouse whose storage layout follows their names."
        raise ApiError(400, "StorageLayoutForbidsNamespaceMove", message)
    if path_key(body.destination[: len(row.path)]) == row.path_key and len(body.destination) > len(row.path):
        raise ApiError(400, "NamespaceCannotMoveIntoSelf", f"Namespace '{name}' cannot be moved into itself.")
    if session.scalars(select(NamespaceRow.id).where(NamespaceRow.parent_id == row.id).limit(1)).first():
        message = f"Namespace '{name}' has child namespaces and cannot be moved."
        raise ApiError(409, "NamespaceHasChildren", message)
    if row.protected and not body.force:
        raise ApiError(409, "NamespaceProtected", f"Namespace '{name}' is protected and force flag not set.")
