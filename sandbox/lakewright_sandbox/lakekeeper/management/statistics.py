"""Hourly number of tables and views of a warehouse."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from sqlalchemy import select
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.database.lookups import find_warehouse
from lakewright_sandbox.lakekeeper.database.models import WarehouseStatisticsRow
from lakewright_sandbox.lakekeeper.database.statistics import take_statistics
from lakewright_sandbox.lakekeeper.protocol.clock import timestamp
from lakewright_sandbox.lakekeeper.protocol.responses import json_response
from lakewright_sandbox.lakekeeper.server.paging import ListPage, page_token
from lakewright_sandbox.lakekeeper.server.server import Server

router = APIRouter(prefix="/management/v1")


@router.get("/warehouse/{warehouse_id}/statistics")
def get_statistics(
    server: Server,
    warehouse_id: UUID,
    page_size: Annotated[int | None, Query()] = None,
    page_token_: Annotated[str | None, Query(alias="page_token")] = None,
) -> Response:
    """List the hourly statistics of a warehouse, newest first."""
    page = ListPage.from_request(server.settings, page_token_, page_size)
    with server.database.write() as session:
        find_warehouse(session, str(warehouse_id))
        take_statistics(session, str(warehouse_id), server.clock.now())
        query = select(WarehouseStatisticsRow).where(WarehouseStatisticsRow.warehouse_id == str(warehouse_id))
        if page.after:
            query = query.where(WarehouseStatisticsRow.hour < page.after[0])
        rows = session.scalars(query.order_by(WarehouseStatisticsRow.hour.desc()).limit(page.size)).all()
    stats = [
        {
            "timestamp": timestamp(row.hour),
            "number-of-tables": row.number_of_tables,
            "number-of-views": row.number_of_views,
            "updated-at": timestamp(row.updated_at),
        }
        for row in rows
    ]
    token = page_token(rows[-1].hour, "") if rows else None
    return json_response({"warehouse-ident": str(warehouse_id), "stats": stats, "next-page-token": token})
