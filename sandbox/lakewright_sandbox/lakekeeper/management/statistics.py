"""How many tables and views a warehouse has held, by the hour."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.responses import Response

from ..clock import timestamp
from ..models import Tabular, WarehouseStatistics
from ..paging import Page, page_token
from ..responses import json_response
from ..server import Server, find_warehouse

HOUR = 3_600_000_000

router = APIRouter(prefix="/management/v1")


def take_statistics(session: Session, warehouse_id: str, now: int) -> None:
    """Counts for the current hour; the last count of an hour stays."""
    counts: dict[str, int] = {}
    query = select(Tabular.kind, func.count()).where(Tabular.warehouse_id == warehouse_id, Tabular.deleted_at.is_(None))
    for kind, number in session.execute(query.group_by(Tabular.kind)):
        counts[kind] = number
    row = session.get(WarehouseStatistics, (warehouse_id, now // HOUR * HOUR))
    if row is None:
        row = WarehouseStatistics(warehouse_id=warehouse_id, hour=now // HOUR * HOUR)
        session.add(row)
    row.number_of_tables, row.number_of_views = counts.get("table", 0), counts.get("view", 0)
    row.updated_at = now


@router.get("/warehouse/{warehouse_id}/statistics")
def get_statistics(
    server: Server,
    warehouse_id: UUID,
    page_size: Annotated[int | None, Query()] = None,
    page_token_: Annotated[str | None, Query(alias="page_token")] = None,
) -> Response:
    page = Page.asked(server.settings, page_token_, page_size)
    with server.database.write() as session:
        find_warehouse(session, str(warehouse_id))
        take_statistics(session, str(warehouse_id), server.clock.now())
        query = select(WarehouseStatistics).where(WarehouseStatistics.warehouse_id == str(warehouse_id))
        if page.after:
            query = query.where(WarehouseStatistics.hour < page.after[0])
        rows = session.scalars(query.order_by(WarehouseStatistics.hour.desc()).limit(page.size)).all()
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
