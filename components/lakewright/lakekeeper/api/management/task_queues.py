"""Calls about the configuration of task queues, of a warehouse's and of a project's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError

ROOT = "/management/v1"

SOFT_DELETION = "soft_deletion"
LOG_CLEANUP = "task_log_cleanup"
"""The one queue that belongs to projects."""


@dataclass(frozen=True)
class Scope:
    """Whose queue it is: a warehouse's, or without one a project's."""

    warehouse_id: str | None
    project_id: str | None

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"warehouse {self.warehouse_id}" if self.warehouse_id else f"project {self.project_id}"


@dataclass(frozen=True)
class QueueConfig:
    """How a queue is configured; empty and None where nobody has set anything."""

    config: Mapping[str, Any]
    max_seconds_since_last_heartbeat: int | None

    @property
    def is_set(self) -> bool:
        """Whether somebody has set something."""
        return bool(self.config) or self.max_seconds_since_last_heartbeat is not None


def get(client: Client, scope: Scope, queue: str) -> QueueConfig | None:
    """A queue's configuration, or None if the project, or an active warehouse, is not there."""
    try:
        found = client.json("GET", _path(client, scope, queue), project=scope.project_id)
    except NotFoundError:
        return None
    config: dict[str, Any] = found.get("queue-config") or {}
    return QueueConfig(
        {key: value for key, value in config.items() if key != "queue-name" and value is not None},
        found.get("max-seconds-since-last-heartbeat"),
    )


def put(client: Client, scope: Scope, queue: str, wanted: QueueConfig) -> bool:
    """Replace a queue's configuration; whether its owner is there. Without a heartbeat the server keeps its own."""
    config = dict(wanted.config)
    if queue == LOG_CLEANUP:  # the server wants both keys, if only to be told that they are not set
        config = {"cleanup-period": None, "retention-period": None} | config
    body: dict[str, Any] = {"queue-config": config}
    if wanted.max_seconds_since_last_heartbeat is not None:
        body["max-seconds-since-last-heartbeat"] = wanted.max_seconds_since_last_heartbeat
    try:
        client.call("POST", _path(client, scope, queue), project=scope.project_id, body=body)
    except NotFoundError:
        return False
    return True


def _path(client: Client, scope: Scope, queue: str) -> str:
    name = client.server().soft_deletion_queue if queue == SOFT_DELETION else queue
    owner = f"warehouse/{scope.warehouse_id}" if scope.warehouse_id else "project"
    return f"{ROOT}/{owner}/task-queue/{name}/config"
