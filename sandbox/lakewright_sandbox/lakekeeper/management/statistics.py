"""Hourly statistics: count the tables and views of warehouses, and list the counts of one."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.database.lookups import find_warehouse
from lakewright_sandbox.lakekeeper.database.models import TabularRow, WarehouseRow, WarehouseStatisticsRow
from lakewright_sandbox.lakekeeper.protocol.clock import timestamp
from lakewright_sandbox.lakekeeper.protocol.responses import json_response
from lakewright_sandbox.lakekeeper.server.paging import ListPage, page_token
from lakewright_sandbox.lakekeeper.server.server import Server

HOUR = 3_600_000_000
"""Microseconds."""

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


def take_statistics(session: Session, warehouse_id: str, now: int) -> None:
    """Store the counts of a warehouse for the current hour; the last count of an hour is kept."""
    counts: dict[str, int] = {}
    query = select(TabularRow.kind, func.count()).where(
        TabularRow.warehouse_id == warehouse_id, TabularRow.deleted_at.is_(None)
    )
    for kind, number in session.execute(query.group_by(TabularRow.kind)):
        counts[kind] = number
    row = session.get(WarehouseStatisticsRow, (warehouse_id, now // HOUR * HOUR))
    if row is None:
        row = WarehouseStatisticsRow(warehouse_id=warehouse_id, hour=now // HOUR * HOUR)
        session.add(row)
    row.number_of_tables, row.number_of_views = counts.get("table", 0), counts.get("view", 0)
    row.updated_at = now


def take_all_statistics(session: Session, now: int) -> None:
    """Store the counts of all warehouses for the current hour."""
    for warehouse_id in session.scalars(select(WarehouseRow.id)).all():
        take_statistics(session, warehouse_id, now)
