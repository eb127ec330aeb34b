"""Hourly statistics: the number of tables and views by warehouse."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.database.models import TabularRow, WarehouseRow, WarehouseStatisticsRow

HOUR = 3_600_000_000


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
