"""Add tasks to the queues and cancel them; the worker in `task_worker.py` runs them."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.database.models import ACTIVE_TASK, NamespaceRow, TabularRow, TaskRow, WarehouseRow
from lakewright_sandbox.lakekeeper.protocol.clock import new_id
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper

SOFT_DELETION = "soft_deletion"
PURGE = "tabular_purge"
MAINTENANCE = ("expire_snapshots", "remove_orphan_files")
"""Queues of Lakekeeper's enterprise edition."""


def warehouse_queues(settings: Settings) -> tuple[str, ...]:
    """Return the queues that warehouses of this server have."""
    return (SOFT_DELETION, PURGE, *(MAINTENANCE if settings.maintenance_queues else ()))


def schedule_purge(
    server: Lakekeeper, session: Session, warehouse: WarehouseRow, tabular: TabularRow, *, delay_seconds: int = 0
) -> None:
    """Schedule the deletion of all files under the tabular's location."""
    task = _task(server, session, warehouse, tabular)
    task.scheduled_for += delay_seconds * 1_000_000
    task.queue, task.payload = PURGE, {"location": tabular.location}
    session.add(task)


def schedule_soft_deletion(
    server: Lakekeeper, session: Session, warehouse: WarehouseRow, tabular: TabularRow, *, due: int, purge: bool
) -> None:
    """Schedule the final deletion of a dropped tabular, with a purge of its files if requested."""
    task = _task(server, session, warehouse, tabular)
    task.queue, task.payload, task.scheduled_for = SOFT_DELETION, {"purge": purge}, due
    session.add(task)


def cancel_soft_deletion(session: Session, tabular: TabularRow) -> None:
    """Cancel the final deletion of a tabular."""
    query = select(TaskRow).where(
        TaskRow.warehouse_id == tabular.warehouse_id,
        TaskRow.entity_id == tabular.id,
        TaskRow.queue == SOFT_DELETION,
        TaskRow.status.in_(ACTIVE_TASK),
    )
    for task in session.scalars(query):
        task.status = "CANCELLED"


def _task(server: Lakekeeper, session: Session, warehouse: WarehouseRow, tabular: TabularRow) -> TaskRow:
    """Return a task that is due now; the caller sets queue and payload."""
    namespace = session.get(NamespaceRow, tabular.namespace_id)
    now = server.clock.now()
    return TaskRow(
        id=new_id(),
        project_id=warehouse.project_id,
        warehouse_id=warehouse.id,
        entity_kind=tabular.kind,
        entity_id=tabular.id,
        entity_name=[*(namespace.path if namespace else []), tabular.name],
        status="SCHEDULED",
        message=None,
        attempt=0,
        scheduled_for=now,
        picked_up_at=None,
        created_at=now,
        updated_at=None,
    )
