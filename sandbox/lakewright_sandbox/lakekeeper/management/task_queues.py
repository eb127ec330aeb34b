"""Configuration of task queues of warehouses and projects."""

from __future__ import annotations

import re
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.database.lookups import find_warehouse
from lakewright_sandbox.lakekeeper.database.models import ProjectRow, TaskQueueConfigRow
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError, project_missing
from lakewright_sandbox.lakekeeper.protocol.requests import Body, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import empty, json_response
from lakewright_sandbox.lakekeeper.protocol.versions import find_queue, queue_name
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper, ProjectId, Server
from lakewright_sandbox.lakekeeper.server.task_queue import warehouse_queues

LOG_CLEANUP = "task_log_cleanup"
_DURATION = re.compile(r"P(?:(\d+W)|(0+Y)?(0+M)?(\d+D)?(?:T(?=\d)(\d+H)?(\d+M)?(\d+(?:[.,]\d+)?S)?)?)")
"""An ISO 8601 duration without years and months."""

router = APIRouter(prefix="/management/v1")


class SetQueueConfig(Body):
    """Configuration of a task queue."""

    queue_config: dict[str, Any]
    max_seconds_since_last_heartbeat: int | None = None


@router.get("/warehouse/{warehouse_id}/task-queue/{queue}/config")
def get_config(server: Server, warehouse_id: UUID, queue: str) -> Response:
    """Return the configuration of a warehouse's queue."""
    with server.database.read() as session:
        find_warehouse(session, str(warehouse_id), active=True)
    version = server.settings.version
    known_queue = find_queue(version, queue)
    return _read(
        server, str(warehouse_id), known_queue or queue, queue_name(version, known_queue) if known_queue else queue
    )


@router.post("/warehouse/{warehouse_id}/task-queue/{queue}/config")
def set_config(
    server: Server, warehouse_id: UUID, queue: str, body: Annotated[SetQueueConfig, read_body(SetQueueConfig)]
) -> Response:
    """Set the configuration of a warehouse's queue."""
    version = server.settings.version
    name = find_queue(version, queue)
    queues = warehouse_queues(server.settings)
    if name is None or name not in queues:
        queue_names = [queue_name(version, existing) for existing in queues]
        raise ApiError(400, "QueueNotFound", f"Queue '{queue}' not found! Existing queues: {queue_names}")
    with server.database.read() as session:
        find_warehouse(session, str(warehouse_id), active=True)
    return _store(server, str(warehouse_id), name, body)


@router.get("/project/task-queue/task_log_cleanup/config")
def get_log_cleanup(server: Server, project: ProjectId) -> Response:
    """Return the configuration of the project's log cleanup."""
    _check_project(server, project)
    return _read(server, project, LOG_CLEANUP, LOG_CLEANUP)


@router.post("/project/task-queue/task_log_cleanup/config")
def set_log_cleanup(
    server: Server, project: ProjectId, body: Annotated[SetQueueConfig, read_body(SetQueueConfig)]
) -> Response:
    """Set the configuration of the project's log cleanup."""
    _check_project(server, project)
    _check_log_cleanup(body.queue_config)
    return _store(server, project, LOG_CLEANUP, body)


def _check_log_cleanup(config: dict[str, Any]) -> None:
    """Raise 400 `InvalidQueueConfig` unless both periods are durations or null. Warehouse queues accept any object."""
    for key in ("cleanup-period", "retention-period"):
        if key not in config:
            raise _make_invalid_config(f"missing field `{key}`")
        period = config[key]
        if period is not None and not isinstance(period, str):
            raise _make_invalid_config(f"invalid type for `{key}`, expected an ISO 8601 duration")
        if period is not None and not _is_duration(period):
            raise _make_invalid_config(f"Invalid ISO8601 duration: {period}")


def _is_duration(text: str) -> bool:
    match = _DURATION.fullmatch(text)
    return match is not None and any(match.groups())


def _make_invalid_config(reason: str) -> ApiError:
    message = f"Failed to deserialize queue config for queue-name '{LOG_CLEANUP}': '{reason}'"
    return ApiError(400, "InvalidQueueConfig", message)


def _check_project(server: Lakekeeper, project: str) -> None:
    with server.database.read() as session:
        if session.get(ProjectRow, project) is None:
            raise project_missing(project)


def _read(server: Lakekeeper, scope: str, queue: str, name: str) -> Response:
    with server.database.read() as session:
        row = session.get(TaskQueueConfigRow, (scope, queue))
    return json_response(
        {
            "queue-config": {**(row.config if row else {}), "queue-name": name},
            "max-seconds-since-last-heartbeat": row.max_seconds_since_last_heartbeat if row else None,
        }
    )


def _store(server: Lakekeeper, scope: str, queue: str, body: SetQueueConfig) -> Response:
    """Store a configuration; without a heartbeat the old heartbeat is kept."""
    config = {key: value for key, value in body.queue_config.items() if key != "queue-name"}
    with server.database.write() as session:
        row = session.get(TaskQueueConfigRow, (scope, queue))
        if row is None:
            row = TaskQueueConfigRow(scope=scope, queue=queue, max_seconds_since_last_heartbeat=None)
            session.add(row)
        row.config = config
        if body.max_seconds_since_last_heartbeat is not None:
            row.max_seconds_since_last_heartbeat = body.max_seconds_since_last_heartbeat
    return empty()
