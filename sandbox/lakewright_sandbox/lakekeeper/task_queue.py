"""Putting work in the queues and taking it out again; the worker in `tasks.py` does it."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from .clock import new_id
from .models import ACTIVE_TASK, Namespace, Tabular, Task, Warehouse
from .server import Lakekeeper

SOFT_DELETION = "soft_deletion"
PURGE = "tabular_purge"


def schedule_purge(server: Lakekeeper, session: Session, warehouse: Warehouse, tabular: Tabular) -> None:
    _schedule(server, session, warehouse, tabular, PURGE, server.clock.now(), {"location": tabular.location})


def schedule_soft_deletion(
    server: Lakekeeper, session: Session, warehouse: Warehouse, tabular: Tabular, *, due: int, purge: bool
) -> None:
    _schedule(server, session, warehouse, tabular, SOFT_DELETION, due, {"purge": purge})


def cancel_soft_deletion(session: Session, tabular_id: str) -> None:
    query = select(Task).where(Task.entity_id == tabular_id, Task.queue == SOFT_DELETION, Task.status.in_(ACTIVE_TASK))
    for task in session.scalars(query):
        task.status = "CANCELLED"


def _schedule(
    server: Lakekeeper,
    session: Session,
    warehouse: Warehouse,
    tabular: Tabular,
    queue: str,
    due: int,
    payload: dict[str, object],
) -> None:
    namespace = session.get(Namespace, tabular.namespace_id)
    now = server.clock.now()
    session.add(
        Task(
            id=new_id(),
            project_id=warehouse.project_id,
            warehouse_id=warehouse.id,
            queue=queue,
            entity_kind=tabular.kind,
            entity_id=tabular.id,
            entity_name=[*(namespace.path if namespace else []), tabular.name],
            payload=payload,
            status="SCHEDULED",
            message=None,
            attempt=0,
            scheduled_for=due,
            picked_up_at=None,
            created_at=now,
            updated_at=None,
        )
    )
