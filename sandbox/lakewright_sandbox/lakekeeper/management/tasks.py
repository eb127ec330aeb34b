"""Tasks of a warehouse: list, return one, and control them (stop, cancel, run now, run at a time)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field
from sqlalchemy import select, tuple_
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.database.lookups import find_tabular_by_id, find_warehouse
from lakewright_sandbox.lakekeeper.database.models import TaskRow
from lakewright_sandbox.lakekeeper.protocol.clock import optional_timestamp, timestamp, to_micros
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import Body, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.protocol.versions import find_queue, queue_name
from lakewright_sandbox.lakekeeper.server.paging import ListPage, page_token
from lakewright_sandbox.lakekeeper.server.server import Server
from lakewright_sandbox.lakekeeper.server.task_queue import SOFT_DELETION

router = APIRouter(prefix="/management/v1/warehouse/{warehouse_id}")

TaskStatus = Literal["RUNNING", "SCHEDULED", "STOPPING", "CANCELLED", "SUCCESS", "FAILED"]


class EntityFilter(Body):
    """An object whose tasks to list."""

    type: Literal["table", "view", "generic-table", "warehouse"]
    table_id: UUID | None = None
    view_id: UUID | None = None


class ListTasks(Body):
    """Filters of a listing of tasks."""

    status: list[TaskStatus] | None = None
    queue_name: list[str] | None = None
    entities: list[EntityFilter] | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    page_size: int | None = None
    page_token: str | None = None


class Stop(Body):
    """Request to stop running tasks."""

    action_type: Literal["stop"]


class Cancel(Body):
    """Request to cancel tasks."""

    action_type: Literal["cancel"]


class RunNow(Body):
    """Request to run tasks now."""

    action_type: Literal["run-now"]


class RunAt(Body):
    """Request to run tasks at a time."""

    action_type: Literal["run-at"]
    scheduled_for: datetime


class ControlTasks(Body):
    """An action on some tasks."""

    action: Annotated[Stop | Cancel | RunNow | RunAt, Field(discriminator="action_type")]
    task_ids: list[UUID]


@router.post("/task/list")
def list_tasks(server: Server, warehouse_id: UUID, body: Annotated[ListTasks, read_body(ListTasks)]) -> Response:
    """List tasks, newest first; every page that is not empty has a token."""
    page = ListPage.from_request(server.settings, body.page_token, body.page_size, strict=True)
    query = select(TaskRow).where(TaskRow.warehouse_id == str(warehouse_id))
    if body.status:
        query = query.where(TaskRow.status.in_(body.status))
    if body.queue_name:
        query = query.where(
            TaskRow.queue.in_([find_queue(server.settings.version, name) or "" for name in body.queue_name])
        )
    if body.entities:
        entity_ids = [str(entity.table_id or entity.view_id) for entity in body.entities]
        query = query.where(TaskRow.entity_id.in_(entity_ids))
    if body.created_after:
        query = query.where(TaskRow.created_at >= to_micros(body.created_after))
    if body.created_before:
        query = query.where(TaskRow.created_at <= to_micros(body.created_before))
    if page.after:
        query = query.where(tuple_(TaskRow.created_at, TaskRow.id) < page.after)
    with server.database.read() as session:
        find_warehouse(session, str(warehouse_id), active=True)
        rows = session.scalars(query.order_by(TaskRow.created_at.desc(), TaskRow.id.desc()).limit(page.size)).all()
    token = page_token(rows[-1].created_at, rows[-1].id) if rows else None
    return json_response({"tasks": [_to_json(row, server.settings.version) for row in rows], "next-page-token": token})


@router.get("/task/by-id/{task_id}")
def get_task(server: Server, warehouse_id: UUID, task_id: UUID) -> Response:
    """Return a task."""
    with server.database.read() as session:
        find_warehouse(session, str(warehouse_id), active=True)
        row = session.get(TaskRow, str(task_id))
    if row is None or row.warehouse_id != str(warehouse_id):
        raise ApiError(404, "TaskNotFound", f"Task with id {task_id} not found.")
    detail: dict[str, Any] = {
        "task-data": row.payload,
        "execution-details": None,
        "message": row.message,
        "attempts": [],
    }
    return json_response(_to_json(row, server.settings.version) | detail)


@router.post("/task/control")
def control_tasks(
    server: Server, warehouse_id: UUID, body: Annotated[ControlTasks, read_body(ControlTasks)]
) -> Response:
    """Stop, cancel or reschedule tasks. Cancelling a soft deletion restores the tabular."""
    now = server.clock.now()
    with server.database.write() as session:
        find_warehouse(session, str(warehouse_id), active=True)
        ids = [str(task_id) for task_id in body.task_ids]
        rows_by_id = {row.id: row for row in session.scalars(select(TaskRow).where(TaskRow.id.in_(ids)))}
        for task_id in ids:
            row = rows_by_id.get(task_id)
            if row is None or row.warehouse_id != str(warehouse_id):
                raise ApiError(404, "TaskNotFound", f"Task with id {task_id} not found.")
            if row.status == "SCHEDULED":
                if isinstance(body.action, Cancel):
                    row.status, row.updated_at = "CANCELLED", now
                    tabular = find_tabular_by_id(session, row.warehouse_id, row.entity_id)
                    if row.queue == SOFT_DELETION and tabular is not None:
                        tabular.deleted_at = tabular.expires_at = None
                elif isinstance(body.action, RunNow):
                    row.scheduled_for = now
                elif isinstance(body.action, RunAt):
                    row.scheduled_for = to_micros(body.action.scheduled_for)
            elif row.status == "RUNNING" and isinstance(body.action, Stop | Cancel):
                row.status = "STOPPING"
    return empty()


def _to_json(row: TaskRow, version: str) -> dict[str, Any]:
    return {
        "task-id": row.id,
        "project-id": row.project_id,
        "warehouse-id": row.warehouse_id,
        "queue-name": queue_name(version, row.queue),
        "entity": {"type": row.entity_kind, f"{row.entity_kind}-id": row.entity_id},
        "entity-name": row.entity_name,
        "status": row.status,
        "scheduled-for": timestamp(row.scheduled_for),
        "picked-up-at": optional_timestamp(row.picked_up_at),
        "attempt": row.attempt,
        "last-heartbeat-at": optional_timestamp(row.picked_up_at),
        "progress": 1.0 if row.status == "SUCCESS" else 0.0,
        "parent-task-id": None,
        "created-at": timestamp(row.created_at),
        "updated-at": optional_timestamp(row.updated_at),
    }
