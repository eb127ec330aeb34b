"""The audit log of the server: a line of JSON per authorized or refused change, as Lakekeeper 0.12 to 0.14 log it.

The real server logs these events among others on stdout. Left out here are reading requests, the contexts of actions
(such as the properties of a commit) and the requests of users and tags. Lakekeeper 0.11 logs no such events.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lakewright_sandbox.lakekeeper.protocol.requests import TokenPrincipal

_SEPARATOR = "\x1f"
"""Between the levels of a namespace in a path."""
_TARGET = "lakekeeper::service::events::backends::audit"
_TABLE = r"/catalog/v1/(?P<warehouse_id>[^/]+)/namespaces/(?P<namespace>[^/]+)/tables/(?P<table>[^/]+)"
_NAMESPACE = r"/catalog/v1/(?P<warehouse_id>[^/]+)/namespaces/(?P<namespace>[^/]+)"
_WAREHOUSE = r"/management/v1/warehouse/(?P<warehouse_id>[^/]+)"
_ROLE = r"/management/v1/role/(?P<role_id>[^/]+)"
_USER = r"/management/v1/user/(?P<user_id>[^/]+)"
_PROJECT = r"/management/v1/project/(?P<project_id>[^/]+)"
_OWN_PROJECT = r"/management/v1/project"
"""The project of the header `x-project-id`, else the default project."""
_PERMISSIONS = r"/management/v1/permissions"
_TABULAR = r"/(?P<kind>table|view|generic-table)/(?P<object_id>[^/]+)"

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
    ("POST", rf"{_OWN_PROJECT}/rename", "rename", "project"),
    ("DELETE", _PROJECT, "delete", "project"),
    ("DELETE", _OWN_PROJECT, "delete", "project"),
    ("POST", rf"{_OWN_PROJECT}/task-queue/[^/]+/config", "modify_task_queue_config", "project"),
    ("POST", r"/catalog/v1/(?P<warehouse_id>[^/]+)/tables/rename", "rename", "table"),
    ("POST", r"/catalog/v1/(?P<warehouse_id>[^/]+)/transactions/commit", "commit", "table"),
    (
        "POST",
        rf"{_PERMISSIONS}/warehouse/(?P<warehouse_id>[^/]+)/assignments",
        "update_warehouse_assignments",
        "warehouse",
    ),
    (
        "POST",
        rf"{_PERMISSIONS}/namespace/(?P<namespace_id>[^/]+)/assignments",
        "update_namespace_assignments",
        "namespace",
    ),
    (
        "POST",
        rf"{_PERMISSIONS}/warehouse/(?P<warehouse_id>[^/]+){_TABULAR}/assignments",
        "update_{kind}_assignments",
        "",
    ),
    ("POST", rf"{_PERMISSIONS}/role/(?P<role_id>[^/]+)/assignments", "update_role_assignments", "role"),
    ("POST", rf"{_PERMISSIONS}/project(/(?P<project_id>[^/]+))?/assignments", "update_project_assignments", "project"),
    ("POST", rf"{_OWN_PROJECT}/grants", "apply_grants", "project"),
    ("POST", rf"{_WAREHOUSE}/grants", "apply_grants", "warehouse"),
    ("POST", rf"{_WAREHOUSE}/namespace/(?P<namespace_id>[^/]+)/grants", "apply_grants", "namespace"),
    ("POST", rf"{_WAREHOUSE}{_TABULAR}/grants", "apply_grants", ""),
)
"""Method, path, name of the action and type of the object; without a type, the path's `kind` decides both."""


class AuditLog:
    """Middleware that appends an event for each change to a file."""

    def __init__(self, app: ASGIApp, file: Path, default_project: str) -> None:
        """Wrap an application. The file is created."""
        self._app, self._file, self._default_project = app, file, default_project
        self._lock = threading.Lock()
        file.touch()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        event = self._find_event(scope) if scope["type"] == "http" else None
        if event is None:
            await self._app(scope, receive, send)
            return
        body = bytearray()

        async def receive_and_keep() -> Message:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        async def send_and_log(message: Message) -> None:
            # A version without the path has no endpoint for it.
            if message["type"] == "http.response.start" and message["status"] != 401 and "endpoint" in scope:
                self._write(event, _find_entities(event, bytes(body)), scope, denied=message["status"] == 403)
            await send(message)

        await self._app(scope, receive_and_keep, send_and_log)

    def _find_event(self, scope: Scope) -> dict[str, Any] | None:
        """Return action, object and address of a request that changes something."""
        path: str = scope["path"]
        for method, pattern, action, declared_kind in _EVENTS:
            match = re.fullmatch(pattern, path) if method == scope["method"] else None
            if match is None:
                continue
            named = {key.replace("_", "-"): value for key, value in match.groupdict().items() if value}
            kind = declared_kind or named.pop("kind")
            if not declared_kind:
                named[f"{kind}-id"] = named.pop("object-id")
            if kind == "project":
                named.setdefault("project-id", self._find_project(scope))
            if "namespace" in named:
                named["namespace"] = named["namespace"].replace(_SEPARATOR, ".")
            raw: bytes = scope.get("raw_path") or path.encode()
            return {
                "action": {"action_name": action.format(kind=kind.replace("-", "_"))},
                "entity": {"entity_type": kind, **named},
                "uri": raw.decode("ascii", "replace"),
            }
        return None

    def _find_project(self, scope: Scope) -> str:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        return headers.get(b"x-project-id") or headers.get(b"x-project-ident") or self._default_project

    def _write(
        self, event: Mapping[str, Any], entities: Sequence[Mapping[str, str]], scope: Scope, *, denied: bool
    ) -> None:
        principal: TokenPrincipal | None = scope.get("state", {}).get("principal")
        known = {"actor_type": "principal", "principal": principal.id} if principal else {"actor_type": "anonymous"}
        moment = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        decision = "denied" if denied else "allowed"
        line = {
            "timestamp": moment,
            "level": "INFO",
            "message": f"Authorization {'failed' if denied else 'succeeded'} event",
            "event_source": "audit",
            **(
                {"action": event["action"], "entity": entities[0]}
                if len(entities) == 1
                else {"actions": [event["action"]] * len(entities), "entities": list(entities)}
            ),
            "actor": known,
            "privilege_source": "authorizer",
            "authorizations": [
                {"action": event["action"], "entity": entity, "allowed": not denied} for entity in entities
            ],
            "decision": decision,
            "target": _TARGET,
            "spans": [{"method": scope["method"], "uri": event["uri"], "version": "HTTP/1.1", "name": "request"}],
        }
        with self._lock, self._file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")


def _find_entities(event: Mapping[str, Any], body: bytes) -> list[dict[str, str]]:
    """Return the objects of an event. A body names the tables of a rename and of a transaction."""
    entity: dict[str, str] = event["entity"]
    if not event["uri"].endswith(("/tables/rename", "/transactions/commit")):
        return [entity]
    try:
        document: Any = json.loads(body)
        changes: list[Any] = document.get("table-changes") or [{"identifier": document.get("source")}]
        identifiers: list[Any] = [change["identifier"] for change in changes]
        return [
            {**entity, "namespace": ".".join(identifier["namespace"]), "table": identifier["name"]}
            for identifier in identifiers
        ]
    except (ValueError, AttributeError, KeyError, TypeError):  # the server refuses the body
        return [entity]
