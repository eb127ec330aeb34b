"""Events in the log of Lakekeeper: who requested which change of which object.

Lakekeeper 0.13 logs an event per authorized request (`LAKEKEEPER__AUDIT__TRACING__ENABLED`, on by default). The span
of an event has method and path of the request, which name the object and the changed property.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

from lakewright_spark.times import format_json_time

from lakewright.drift.actors.lakekeeper_requests import (
    SEPARATOR,
    Request,
    list_requests,
    project_subject,
    table_subject,
)
from lakewright.drift.actors.source import AuditSourceError, DriftedObject
from lakewright.drift.model import Actor
from lakewright.validation.documents import as_list, as_mapping

SOURCE = "lakekeeper audit log"
CLOUD_EVENTS = "lakekeeper cloud event"
_MARKS = re.compile(r'"audit"|CloudEvent|"specversion"')
_SECONDS = len("2026-01-31T12:00:00")
_READING = ("GET", "HEAD", "OPTIONS")


class LakekeeperLogSource:
    """The log of one server."""

    def __init__(self, path: Path) -> None:
        """Read a file, or all files that a name with `*` stands for."""
        self._path = path

    def actors(self, objects: Sequence[DriftedObject]) -> Iterable[tuple[DriftedObject, Actor]]:
        """Yield the actor of each allowed request that changes a property that differs."""
        drifted_by_request: dict[Request, list[DriftedObject]] = defaultdict(list)
        for drifted in objects:
            for request in list_requests(drifted.difference, drifted.resource, drifted.target_id):
                drifted_by_request[request].append(drifted)
        if not drifted_by_request:
            return
        since = min((drifted.resource.updated for drifted in objects), default="")
        for requests, actor in self._requests(since):
            for request in requests:
                for drifted in drifted_by_request.get(request, ()):
                    yield drifted, actor

    def _requests(self, since: str) -> Iterator[tuple[list[Request], Actor]]:
        files = sorted(map(str, self._path.parent.glob(self._path.name)))
        if not files:
            raise AuditSourceError(f"there is no log of Lakekeeper at {self._path}")
        for name in files:
            try:
                with _open(name) as lines:
                    for line in lines:
                        if _MARKS.search(line) and (entry_actor := _parse(line, since)) is not None:
                            yield entry_actor
            except (OSError, EOFError, UnicodeDecodeError) as error:
                raise AuditSourceError(f"the log {name} cannot be read: {error}") from error


def _open(name: str) -> IO[str]:
    if name.endswith(".gz"):
        return gzip.open(name, "rt", encoding="utf-8", errors="replace")
    return Path(name).open(encoding="utf-8", errors="replace")


def _parse(line: str, since: str) -> tuple[list[Request], Actor] | None:
    """Return requests and actor of an event about a change; None for other lines and for earlier events."""
    try:
        entry = as_mapping(json.loads(line))
        entry_actor = _parse_audit(entry) if entry.get("event_source") == "audit" else _parse_cloud_event(entry)
    except ValueError:
        return None
    if entry_actor is None or not entry_actor[1].name or entry_actor[1].at[:_SECONDS] < since[:_SECONDS]:
        return None
    return entry_actor


def _parse_audit(event: Mapping[str, Any]) -> tuple[list[Request], Actor] | None:
    """Return the request of an audit event about an allowed change, with and without each object, and its actor.

    Lakekeeper logs the event after the authorization and before the change, which may then fail.
    """
    span = next((as_mapping(span) for span in as_list(event.get("spans")) if as_mapping(span).get("uri")), None)
    if event.get("decision") != "allowed" or span is None or span.get("method") in _READING:
        return None
    name, at = _actor_name(as_mapping(event.get("actor"))), str(event.get("timestamp") or "")
    request = Request(str(span["method"]), unquote(urlsplit(str(span["uri"])).path))
    objects = [as_mapping(entity) for entity in (event.get("entity"), *as_list(event.get("entities")))]
    requests = [request, *(replace(request, subject=subject) for entity in objects for subject in _subjects(entity))]
    return requests, Actor(name, at, SOURCE, is_allowed_only=True)


def _subjects(entity: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names by which a request without an object in its path may mean an object."""
    match entity.get("entity_type"):
        case "project" if project_id := entity.get("project-id"):
            yield project_subject(str(project_id))
        case "table" if name := entity.get("table"):
            yield table_subject(str(entity.get("namespace")), str(name))
        case _:
            return


def _parse_cloud_event(entry: Mapping[str, Any]) -> tuple[list[Request], Actor] | None:
    """Return request and actor of a CloudEvent about a table, alone or in the log (`LAKEKEEPER__LOG_CLOUDEVENTS`)."""
    wrapped = entry.get("event")
    event = as_mapping(json.loads(wrapped)) if isinstance(wrapped, str) else entry
    method = {"updateTable": "POST", "dropTable": "DELETE"}.get(str(event.get("type")))
    if method is None or not event.get("specversion"):
        return None
    namespace = str(event.get("namespace")).replace(".", SEPARATOR)
    path = f"/catalog/v1/{event.get('warehouse-id')}/namespaces/{namespace}/tables/{event.get('name')}"
    actor = as_mapping(json.loads(str(event.get("actor") or "{}")))
    name = "anonymous" if actor.get("type") == "anonymous" else str(actor.get("principal") or "")
    at = str(entry.get("timestamp") or _time_of_id(str(event.get("id"))))
    return [Request(method, path)], Actor(name, at, CLOUD_EVENTS)


def _time_of_id(event_id: str) -> str:
    """Return the time in the id of a CloudEvent, a UUID of version 7."""
    milliseconds = UUID(event_id).int >> 80
    return format_json_time(datetime.fromtimestamp(milliseconds / 1000, UTC))


def _actor_name(actor: Mapping[str, Any]) -> str:
    """Return the user of an event; empty for Lakekeeper's own tasks."""
    kind, principal = actor.get("actor_type"), actor.get("principal")
    if kind == "anonymous":
        return "anonymous"
    if not isinstance(principal, str):
        return ""
    role = as_mapping(actor.get("assumed_role"))
    return f"{principal} (role {role.get('role_id')})" if kind == "assumed-role" else principal
