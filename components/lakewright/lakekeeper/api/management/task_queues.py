"""Calls about the configuration of a warehouse's or project's task queues."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError

ROOT = "/management/v1"

SOFT_DELETION = "soft_deletion"
LOG_CLEANUP = "task_log_cleanup"
"""The only queue that belongs to projects."""
LOG_CLEANUP_PERIODS = ("cleanup-period", "retention-period")
"""Settings of the log cleanup. The server requires both keys, even if they are not set."""
_PERIOD = re.compile(r"P(?=\d|T\d)(?:\d+W|(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:[.,]\d+)?S)?)?)")


@dataclass(frozen=True)
class Scope:
    """Owner of a queue: a warehouse, or a project if there is no warehouse."""

    warehouse_id: str | None
    project_id: str | None

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"warehouse {self.warehouse_id}" if self.warehouse_id else f"project {self.project_id}"


@dataclass(frozen=True)
class QueueConfig:
    """Configuration of a queue; empty and None if nothing is set."""

    config: Mapping[str, Any]
    max_seconds_since_last_heartbeat: int | None

    @property
    def is_set(self) -> bool:
        """Return whether anything is set."""
        return bool(self.config) or self.max_seconds_since_last_heartbeat is not None


def is_period(value: object) -> bool:
    """Return whether a value is a duration as the server reads it: ISO 8601 without years and months."""
    return isinstance(value, str) and _PERIOD.fullmatch(value) is not None


def get(client: Client, scope: Scope, queue: str) -> QueueConfig | None:
    """Return a queue's configuration; None if the project or active warehouse does not exist."""
    try:
        response = client.json("GET", _path(client, scope, queue), project=scope.project_id)
    except NotFoundError:
        return None
    config: dict[str, Any] = response.get("queue-config") or {}
    return QueueConfig(
        {key: value for key, value in config.items() if key != "queue-name" and value is not None},
        response.get("max-seconds-since-last-heartbeat"),
    )


def put(client: Client, scope: Scope, queue: str, queue_config: QueueConfig) -> bool:
    """Replace a queue's configuration and return whether its owner exists.

    Without a heartbeat the server keeps its current heartbeat.
    """
    config = dict(queue_config.config)
    if queue == LOG_CLEANUP:
        config = dict.fromkeys(LOG_CLEANUP_PERIODS) | config
    body: dict[str, Any] = {"queue-config": config}
    if queue_config.max_seconds_since_last_heartbeat is not None:
        body["max-seconds-since-last-heartbeat"] = queue_config.max_seconds_since_last_heartbeat
    try:
        client.call("POST", _path(client, scope, queue), project=scope.project_id, body=body)
    except NotFoundError:
        return False
    return True


def _path(client: Client, scope: Scope, queue: str) -> str:
    name = client.server().soft_deletion_queue if queue == SOFT_DELETION else queue
    owner = f"warehouse/{scope.warehouse_id}" if scope.warehouse_id else "project"
    return f"{ROOT}/{owner}/task-queue/{name}/config"
