"""The requests to Lakekeeper that change a property of an object, by the object's state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.drift.model import Difference, DifferenceKind
from lakewright.drift.session import StackResource
from lakewright.validation.documents import mapping_of

_PREFIX = "pulumi-python:dynamic/lakekeeper:"
SEPARATOR = "\x1f"
"""Between the parts of a namespace in a path."""


@dataclass(frozen=True)
class Request:
    """A request. The path is decoded and has no query."""

    method: str
    path: str


def requests_of(difference: Difference, resource: StackResource) -> Iterator[Request]:
    """Yield the requests that make a difference; none for an object or property that is not known here."""
    kind = resource.state.type
    if not kind.startswith(_PREFIX) or difference.kind not in (DifferenceKind.CHANGED, DifferenceKind.GONE):
        return
    rules = _RULES.get(kind.rpartition(":")[2].rpartition(".")[2])
    if rules is None:
        return
    known = _known(resource)
    name = difference.property.replace("[", ".").partition(".")[0]
    for method, path in rules(known, "" if difference.kind is DifferenceKind.GONE else name):
        if path and None not in path:
            yield Request(method, "/" + "/".join(str(part) for part in path))


Known = Mapping[str, Any]
Path = tuple[str | None, ...]
Rules = Callable[[Known, str], list[tuple[str, Path]]]
"""Returns methods and parts of paths by what is known about an object, and by a property; an empty one if it is gone.

A path with a part that is not known is left out.
"""

_MANAGEMENT = ("management", "v1")
_CATALOG = ("catalog", "v1")


def _known(resource: StackResource) -> Known:
    """Return the plain properties of an object's state that paths are made of."""
    found: dict[str, Any] = {"id": resource.state.id}
    for properties in (resource.state.inputs, resource.state.outputs):
        for key in ("warehouse_id", "namespace_id", "name", "namespace", "queue", "object_id"):
            if isinstance(value := properties.get(key), str):
                found[key] = value
        if isinstance(target := properties.get("on"), dict):
            found["on"] = target
    return found


def _joined(namespace: object) -> str | None:
    """Return a namespace as paths have it."""
    return namespace.replace(".", SEPARATOR) if isinstance(namespace, str) and namespace else None


def _warehouse(known: Known, name: str) -> list[tuple[str, Path]]:
    warehouse = known["id"]
    if not name:
        return [("DELETE", (*_MANAGEMENT, "warehouse", warehouse))]
    ends = {
        "name": ("rename",),
        "storage": ("storage",),
        "credential": ("storage", "storage-credential"),
        "credential_fingerprint": ("storage", "storage-credential"),
        "delete_profile": ("delete-profile",),
        "protected": ("protection",),
        "active": ("activate", "deactivate"),
        "allowed_format_versions": ("format-version-policy",),
        "default_format_version": ("format-version-policy",),
    }
    found: list[tuple[str, Path]] = [
        ("POST", (*_MANAGEMENT, "warehouse", warehouse, end)) for end in ends.get(name, ())
    ]
    if name == "managed_access":
        found.append(("POST", (*_MANAGEMENT, "permissions", "warehouse", warehouse, "managed-access")))
    return found


def _namespace(known: Known, name: str) -> list[tuple[str, Path]]:
    warehouse, own = known.get("warehouse_id"), known.get("namespace_id")
    path = (*_CATALOG, warehouse, "namespaces", _joined(known.get("name")))
    if not name:
        return [("DELETE", path)]
    found: dict[str, list[tuple[str, Path]]] = {
        "properties": [("POST", (*path, "properties"))],
        "protected": [("POST", (*_MANAGEMENT, "warehouse", warehouse, "namespace", own, "protection"))],
        "managed_access": [("POST", (*_MANAGEMENT, "permissions", "namespace", own, "managed-access"))],
    }
    return found.get(name, [])


def _table(known: Known, name: str) -> list[tuple[str, Path]]:
    warehouse = known.get("warehouse_id")
    path = (*_CATALOG, warehouse, "namespaces", _joined(known.get("namespace")), "tables", known.get("name"))
    if not name:
        return [("DELETE", path)]
    if name == "protected":
        return [("POST", (*_MANAGEMENT, "warehouse", warehouse, "table", known["id"], "protection"))]
    return [] if name in ("name", "namespace") else [("POST", path)]


def _role(known: Known, name: str) -> list[tuple[str, Path]]:
    path = (*_MANAGEMENT, "role", known["id"])
    if name in ("provider_id", "source_id"):
        return [("PUT", (*path, "source-system"))]
    return [("POST", path) if name else ("DELETE", path)]


def _user(known: Known, name: str) -> list[tuple[str, Path]]:
    return [("PUT" if name else "DELETE", (*_MANAGEMENT, "user", known["id"]))]


def _project(known: Known, name: str) -> list[tuple[str, Path]]:
    path = (*_MANAGEMENT, "project", known["id"])
    return [("POST", (*path, "rename")) if name == "name" else ("DELETE", path)]


def _grants(known: Known, _name: str) -> list[tuple[str, Path]]:
    target = mapping_of(known.get("on"))
    kind = target.get("type")
    own = known.get("object_id") if kind == "namespace" else target.get(f"{kind}_id")
    if kind not in ("namespace", "role", "warehouse") or not isinstance(own, str):
        return []
    return [("POST", (*_MANAGEMENT, "permissions", kind, own.rpartition("/")[2], "assignments"))]


def _queue(known: Known, _name: str) -> list[tuple[str, Path]]:
    return [
        (
            "POST",
            (*_MANAGEMENT, "warehouse", known.get("warehouse_id"), "task-queue", known.get("queue"), "config"),
        )
    ]


_RULES: dict[str, Rules] = {
    "Grant": _grants,
    "Grants": _grants,
    "Namespace": _namespace,
    "Project": _project,
    "Role": _role,
    "Table": _table,
    "TaskQueueConfig": _queue,
    "User": _user,
    "Warehouse": _warehouse,
}
"""Rules by kind of resource."""
