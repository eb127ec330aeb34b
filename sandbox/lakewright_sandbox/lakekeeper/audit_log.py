"""The audit log of the server: a line of JSON per authorized or refused change, as Lakekeeper 0.13.3 logs it.

The real server logs these events among others on stdout, also for reading requests, which are left out here.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .protocol.requests import Principal

_TARGET = "lakekeeper::service::events::backends::audit"
_TABLE = r"/catalog/v1/(?P<warehouse_id>[^/]+)/namespaces/(?P<namespace>[^/]+)/tables/(?P<table>[^/]+)"
_NAMESPACE = r"/catalog/v1/(?P<warehouse_id>[^/]+)/namespaces/(?P<namespace>[^/]+)"
_WAREHOUSE = r"/management/v1/warehouse/(?P<warehouse_id>[^/]+)"
_ROLE = r"/management/v1/role/(?P<role_id>[^/]+)"
_USER = r"/management/v1/user/(?P<user_id>[^/]+)"
_PROJECT = r"/management/v1/project/(?P<project_id>[^/]+)"

_EVENTS: tuple[tuple[str, str, str, str], ...] = (
    ("POST", _TABLE, "commit", "table"),
    ("DELETE", _TABLE, "drop", "table"),
    ("POST", rf"{_NAMESPACE}/tables", "create_table", "namespace"),
    ("POST", rf"{_NAMESPACE}/properties", "update_properties", "namespace"),
    ("DELETE", _NAMESPACE, "delete", "namespace"),
    ("POST", r"/catalog/v1/(?P<warehouse_id>[^/]+)/namespaces", "create_namespace", "warehouse"),
    ("POST", rf"{_WAREHOUSE}/namespace/(?P<namespace_id>[^/]+)/protection", "set_protection", "namespace"),
    ("POST", rf"{_WAREHOUSE}/table/(?P<table_id>[^/]+)/protection", "set_protection", "table"),
    ("POST", rf"{_WAREHOUSE}/protection", "set_protection", "warehouse"),
    ("POST", rf"{_WAREHOUSE}/delete-profile", "modify_soft_deletion", "warehouse"),
    ("POST", rf"{_WAREHOUSE}/format-version-policy", "set_format_version_policy", "warehouse"),
    ("POST", rf"{_WAREHOUSE}/rename", "rename", "warehouse"),
    ("POST", rf"{_WAREHOUSE}/storage(-credential)?", "update_storage", "warehouse"),
    ("POST", rf"{_WAREHOUSE}/activate", "activate", "warehouse"),
    ("POST", rf"{_WAREHOUSE}/deactivate", "deactivate", "warehouse"),
    ("POST", rf"{_WAREHOUSE}/task-queue/[^/]+/config", "modify_task_queue_config", "warehouse"),
    ("DELETE", _WAREHOUSE, "delete", "warehouse"),
    ("POST", r"/management/v1/warehouse", "create_warehouse", "project"),
    ("POST", _ROLE, "update", "role"),
    ("PUT", rf"{_ROLE}/source-system", "update_source_system", "role"),
    ("POST", rf"{_ROLE}/members", "manage_role_assignments", "role"),
    ("DELETE", rf"{_ROLE}/members/.+", "manage_role_assignments", "role"),
    ("DELETE", _ROLE, "delete", "role"),
    ("POST", r"/management/v1/role", "create_role", "project"),
    ("PUT", _USER, "update", "user"),
    ("DELETE", _USER, "delete", "user"),
    ("POST", rf"{_PROJECT}/rename", "rename", "project"),
    ("DELETE", _PROJECT, "delete", "project"),
    (
        "POST",
        r"/management/v1/permissions/warehouse/(?P<warehouse_id>[^/]+)/assignments",
        "update_warehouse_assignments",
        "warehouse",
    ),
    (
        "POST",
        r"/management/v1/permissions/namespace/(?P<namespace_id>[^/]+)/assignments",
        "update_namespace_assignments",
        "namespace",
    ),
)
"""Method, path, name of the action and type of the object."""


class AuditLog:
    """Middleware that appends an event for each change to a file."""

    def __init__(self, app: ASGIApp, file: Path) -> None:
        """Wrap an application. The file is created."""
        self._app, self._file = app, file
        self._lock = threading.Lock()
        file.touch()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        event = _event(scope) if scope["type"] == "http" else None
        if event is None:
            await self._app(scope, receive, send)
            return

        async def send_and_log(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] != 401:
                self._write(event, scope, denied=message["status"] == 403)
            await send(message)

        await self._app(scope, receive, send_and_log)

    def _write(self, event: Mapping[str, Any], scope: Scope, *, denied: bool) -> None:
        principal: Principal | None = scope.get("state", {}).get("principal")
        known = {"actor_type": "principal", "principal": principal.id} if principal else {"actor_type": "anonymous"}
        moment = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        decision = "denied" if denied else "allowed"
        line = {
            "timestamp": moment,
            "level": "INFO",
            "message": f"Authorization {'failed' if denied else 'succeeded'} event",
            "event_source": "audit",
            "action": event["action"],
            "entity": event["entity"],
            "actor": known,
            "privilege_source": "authorizer",
            "authorizations": [{"action": event["action"], "entity": event["entity"], "allowed": not denied}],
            "decision": decision,
            "target": _TARGET,
            "spans": [{"method": scope["method"], "uri": event["uri"], "version": "HTTP/1.1", "name": "request"}],
        }
        with self._lock, self._file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")


def _event(scope: Scope) -> dict[str, Any] | None:
    """Return action, object and address of a request that changes something."""
    path: str = scope["path"]
    for method, pattern, action, kind in _EVENTS:
        found = re.fullmatch(pattern, path) if method == scope["method"] else None
        if found is not None:
            named = {key.replace("_", "-"): value for key, value in found.groupdict().items() if value}
            raw: bytes = scope.get("raw_path") or path.encode()
            return {
                "action": {"action_name": action},
                "entity": {"entity_type": kind, **named},
                "uri": raw.decode("ascii", "replace"),
            }
    return None
