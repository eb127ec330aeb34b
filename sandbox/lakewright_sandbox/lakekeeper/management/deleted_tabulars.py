"""Soft-deleted tables and views: list them, bring them back."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.database.lookups import find_tabular_by_id, find_warehouse, looks_empty
from lakewright_sandbox.lakekeeper.database.models import NamespaceRow, TabularRow
from lakewright_sandbox.lakekeeper.protocol.clock import optional_timestamp, timestamp
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError, tabular_missing
from lakewright_sandbox.lakekeeper.protocol.requests import Body, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.server.paging import AskedPage
from lakewright_sandbox.lakekeeper.server.server import Server
from lakewright_sandbox.lakekeeper.server.task_queue import cancel_soft_deletion

router = APIRouter(prefix="/management/v1/warehouse/{warehouse_id}/deleted-tabulars")


class UndropTarget(Body):
    """A soft-deleted table, view or generic table."""

    type: Literal["table", "view", "generic-table"]
    id: UUID


class Undrop(Body):
    """Request to restore soft-deleted tabulars."""

    targets: list[UndropTarget]


@router.get("")
def list_deleted(
    server: Server,
    warehouse_id: UUID,
    page: AskedPage,
    namespace_id: Annotated[UUID | None, Query(alias="namespaceId")] = None,
) -> Response:
    """List the soft-deleted tabulars of a warehouse."""
    query = select(TabularRow, NamespaceRow.path).join(NamespaceRow, NamespaceRow.id == TabularRow.namespace_id)
    query = query.where(TabularRow.warehouse_id == str(warehouse_id), TabularRow.deleted_at.is_not(None))
    if namespace_id:
        query = query.where(TabularRow.namespace_id == str(namespace_id))
    with server.database.read() as session:
        if looks_empty(session, str(warehouse_id)):
            return json_response({"tabulars": [], "next-page-token": None})
        find_warehouse(session, str(warehouse_id), active=True)
        rows = session.execute(page.select(query, TabularRow.created_at, TabularRow.id)).all()
        visible = server.authorizer.filter_visible(session, rows, lambda row: Target.from_tabular(row[0]))
    body: dict[str, Any] = {
        "tabulars": [
            {
                "id": row.id,
                "name": row.name,
                "namespace": path,
                "typ": row.kind,
                "warehouse-id": row.warehouse_id,
                "created-at": timestamp(row.created_at),
                "deleted-at": optional_timestamp(row.deleted_at),
                "expiration-date": optional_timestamp(row.expires_at),
            }
            for row, path in visible
        ],
        "next-page-token": page.next_token([row for row, _ in rows]),
    }
    return json_response(body)


@router.post("/undrop")
def undrop(server: Server, warehouse_id: UUID, body: Annotated[Undrop, read_body(Undrop)]) -> Response:
    """Restore soft-deleted tabulars, all or none; other tabulars remain unchanged."""
    try:
        with server.database.write() as session:
            find_warehouse(session, str(warehouse_id), active=True)
            for target in body.targets:
                row = find_tabular_by_id(session, warehouse_id, target.id)
                if row is None or row.kind != target.type:
                    raise tabular_missing(target.type)
                server.authorizer.require(session, Target.from_tabular(row), "undrop")
                if row.deleted_at is not None:
                    row.deleted_at = row.expires_at = None
                    cancel_soft_deletion(session, row)
    except IntegrityError:
        message = "Tabular with the same name already exists in the namespace"
        raise ApiError(409, "AlreadyExistsException", message, "Error undropping tabulars in catalog") from None
    return empty()
