"""The requests to Lakekeeper that change a property of an object, by the object's state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    subject: str = ""
    """The object, if the path does not name it: the body or a header does."""


def project_subject(project_id: str) -> str:
    """Return the name of a project that a header names."""
    return f"project {project_id}"


def table_subject(namespace: str, name: str) -> str:
    """Return the name of a table that a body names."""
    return f"table {namespace.replace(SEPARATOR, '.')}.{name}"


def requests_of(difference: Difference, resource: StackResource, target_id: str = "") -> Iterator[Request]:
    """Yield the requests that make a difference; none for an object or property that is not known here.

    Args:
        difference: The difference.
        resource: Its resource.
        target_id: Id of the namespace or table that a grant is on, if it is known.
    """
    kind = resource.state.type
    if not kind.startswith(_PREFIX) or difference.kind not in (DifferenceKind.CHANGED, DifferenceKind.GONE):
        return
    rules = _RULES.get(kind.rpartition(":")[2].rpartition(".")[2])
    if rules is None:
        return
    known = {**_known(resource), **({"object_id": target_id} if target_id else {})}
    name = difference.property.replace("[", ".").partition(".")[0]
    for method, path, *subject in rules(known, "" if difference.kind is DifferenceKind.GONE else name):
        if path and None not in path:
            yield Request(method, "/" + "/".join(str(part) for part in path), *subject)


Known = Mapping[str, Any]
Path = tuple[str | None, ...]
Call = tuple[str, Path] | tuple[str, Path, str]
"""Method, parts of a path, and the subject if the path does not name it."""
Rules = Callable[[Known, str], Sequence[Call]]
"""Returns calls by what is known about an object, and by a property; an empty one if it is gone.

A path with a part that is not known is left out.
"""

_MANAGEMENT = ("management", "v1")
_CATALOG = ("catalog", "v1")


def _known(resource: StackResource) -> Known:
    """Return the plain properties of an object's state that paths are made of."""
    found: dict[str, Any] = {"id": resource.state.id}
    for properties in (resource.state.inputs, resource.state.outputs):
        for key in ("warehouse_id", "project_id", "namespace_id", "name", "namespace", "queue", "object_id"):
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


def _table(known: Known, name: str) -> Sequence[Call]:
    warehouse = known.get("warehouse_id")
    path = (*_CATALOG, warehouse, "namespaces", _joined(known.get("namespace")), "tables", known.get("name"))
    if not name:
        return [("DELETE", path)]
    if name == "protected":
        return [("POST", (*_MANAGEMENT, "warehouse", warehouse, "table", known["id"], "protection"))]
    subject = table_subject(str(known.get("namespace")), str(known.get("name")))
    if name in ("name", "namespace"):
        return [("POST", (*_CATALOG, warehouse, "tables", "rename"), subject)]
    return [("POST", path), ("POST", (*_CATALOG, warehouse, "transactions", "commit"), subject)]


def _role(known: Known, name: str) -> list[tuple[str, Path]]:
    path = (*_MANAGEMENT, "role", known["id"])
    if name in ("provider_id", "source_id"):
        return [("PUT", (*path, "source-system"))]
    return [("POST", path) if name else ("DELETE", path)]


def _user(known: Known, name: str) -> list[tuple[str, Path]]:
    return [("PUT" if name else "DELETE", (*_MANAGEMENT, "user", known["id"]))]


def _project(known: Known, name: str) -> Sequence[Call]:
    # Older paths have the id. Newer ones have none: the header `x-project-id` has it.
    end, method = (("rename",), "POST") if name == "name" else ((), "DELETE")
    subject = project_subject(known["id"])
    root = (*_MANAGEMENT, "project")
    return [(method, (*root, known["id"], *end)), (method, (*root, *end), subject)]


def _grants(known: Known, _name: str) -> Sequence[Call]:
    target = mapping_of(known.get("on"))
    kind, warehouse, own = target.get("type"), target.get("warehouse_id"), known.get("object_id")
    own = own.rpartition("/")[2] if isinstance(own, str) else None
    tuples = (*_MANAGEMENT, "permissions")
    match kind:
        case "project":
            project = str(target.get("project_id"))
            subject = project_subject(project)
            return [
                ("POST", (*tuples, "project", project, "assignments")),
                ("POST", (*tuples, "project", "assignments"), subject),
                ("POST", (*_MANAGEMENT, "project", "grants"), subject),
            ]
        case "role":
            return [("POST", (*tuples, "role", target.get("role_id"), "assignments"))]
        case "warehouse":
            return [
                ("POST", (*tuples, "warehouse", warehouse, "assignments")),
                ("POST", (*_MANAGEMENT, "warehouse", warehouse, "grants")),
            ]
        case "namespace":
            return [
                ("POST", (*tuples, "namespace", own, "assignments")),
                ("POST", (*_MANAGEMENT, "warehouse", warehouse, "namespace", own, "grants")),
            ]
        case "table" | "view" | "generic-table":
            return [
                ("POST", (*tuples, "warehouse", warehouse, kind, own, "assignments")),
                ("POST", (*_MANAGEMENT, "warehouse", warehouse, kind, own, "grants")),
            ]
        case _:
            return []


def _queue(known: Known, _name: str) -> Sequence[Call]:
    queue, warehouse, project = known.get("queue"), known.get("warehouse_id"), known.get("project_id")
    # Servers before 0.14 call the queue of soft deletion `tabular_expiration`.
    names = (queue, "tabular_expiration") if queue == "soft_deletion" else (queue,)
    if warehouse is None and project is not None:
        subject = project_subject(project)
        return [("POST", (*_MANAGEMENT, "project", "task-queue", name, "config"), subject) for name in names]
    return [("POST", (*_MANAGEMENT, "warehouse", warehouse, "task-queue", name, "config")) for name in names]


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
