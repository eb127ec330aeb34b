"""The requests to Lakekeeper that change a property of an object, by the object's state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakewright.drift.model import Difference, DifferenceKind
from lakewright.drift.provider_classes import provider_class
from lakewright.drift.session import StackResource
from lakewright.lakekeeper.api.management.warehouses import CHANGE_SUBRESOURCES
from lakewright.lakekeeper.provider.inputs import Declared, Rotate, Update, find_mark
from lakewright.validation.documents import as_mapping

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


def list_requests(difference: Difference, resource: StackResource, target_id: str = "") -> Iterator[Request]:
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
    properties = {**_read_properties(resource), **({"object_id": target_id} if target_id else {})}
    name = difference.property.replace("[", ".").partition(".")[0]
    call = None if difference.kind is DifferenceKind.GONE else _find_call(kind, name)
    for method, path, *subject in rules(properties, call):
        if path and None not in path:
            yield Request(method, "/" + "/".join(str(part) for part in path), *subject)


Known = Mapping[str, Any]
Path = tuple[str | None, ...]
Call = tuple[str, Path] | tuple[str, Path, str]
"""Method, parts of a path, and the subject if the path does not name it."""
Rules = Callable[[Known, str | None], Sequence[Call]]
"""Returns requests by what is known about an object, and by the call that changes the property.

The call is empty for a property that no call changes, and None if the object was deleted. A path with a part that is
not known is left out.
"""

_MANAGEMENT = ("management", "v1")
_CATALOG = ("catalog", "v1")
_MANAGED_ACCESS = "managed-access"


def _read_properties(resource: StackResource) -> Known:
    """Return the plain properties of an object's state that paths are made of."""
    plain_properties: dict[str, Any] = {"id": resource.state.id}
    for properties in (resource.state.inputs, resource.state.outputs):
        for key in ("warehouse_id", "project_id", "namespace_id", "name", "namespace", "queue", "object_id"):
            if isinstance(value := properties.get(key), str):
                plain_properties[key] = value
        if isinstance(target := properties.get("on"), dict):
            plain_properties["on"] = target
    return plain_properties


def _join_levels(namespace: object) -> str | None:
    """Return a namespace as paths have it."""
    return namespace.replace(".", SEPARATOR) if isinstance(namespace, str) and namespace else None


def _find_call(kind: str, name: str) -> str:
    """Return the name of the call that changes a property, by the marks of the property; empty if none does."""
    model: type[Declared] | None = getattr(provider_class(kind), "args", None)
    field = model.model_fields.get(name) if model else None
    mark = (find_mark(field, Update) or find_mark(field, Rotate)) if field else None
    return mark.via if mark else ""


def _warehouse(properties: Known, call: str | None) -> list[tuple[str, Path]]:
    warehouse = properties["id"]
    if call is None:
        return [("DELETE", (*_MANAGEMENT, "warehouse", warehouse))]
    if call == _MANAGED_ACCESS:
        return [("POST", (*_MANAGEMENT, "permissions", "warehouse", warehouse, call))]
    subresources = CHANGE_SUBRESOURCES.get(call, (call,)) if call else ()
    return [("POST", (*_MANAGEMENT, "warehouse", warehouse, subresource)) for subresource in subresources]


def _namespace(properties: Known, call: str | None) -> list[tuple[str, Path]]:
    warehouse, namespace_id = properties.get("warehouse_id"), properties.get("namespace_id")
    path = (*_CATALOG, warehouse, "namespaces", _join_levels(properties.get("name")))
    if call is None:
        return [("DELETE", path)]
    match call:
        case "":
            return []
        case "protection" as call:
            return [("POST", (*_MANAGEMENT, "warehouse", warehouse, "namespace", namespace_id, call))]
        case "managed-access" as call:
            return [("POST", (*_MANAGEMENT, "permissions", "namespace", namespace_id, call))]
        case call:
            return [("POST", (*path, call))]


def _table(properties: Known, call: str | None) -> Sequence[Call]:
    warehouse = properties.get("warehouse_id")
    path = (
        *_CATALOG,
        warehouse,
        "namespaces",
        _join_levels(properties.get("namespace")),
        "tables",
        properties.get("name"),
    )
    if call is None:
        return [("DELETE", path)]
    subject = table_subject(str(properties.get("namespace")), str(properties.get("name")))
    match call:
        case "protection" as call:
            return [("POST", (*_MANAGEMENT, "warehouse", warehouse, "table", properties["id"], call))]
        case "rename" as call:
            return [("POST", (*_CATALOG, warehouse, "tables", call), subject)]
        case _:  # a computed output, such as `drift`, follows from commits as well
            return [("POST", path), ("POST", (*_CATALOG, warehouse, "transactions", "commit"), subject)]


def _view(properties: Known, call: str | None) -> Sequence[Call]:
    warehouse, levels = properties.get("warehouse_id"), _join_levels(properties.get("namespace"))
    path = (*_CATALOG, warehouse, "namespaces", levels, "views", properties.get("name"))
    match call:
        case None:
            return [("DELETE", path)]
        case "protection" as call:
            return [("POST", (*_MANAGEMENT, "warehouse", warehouse, "view", properties["id"], call))]
        case "rename":
            return []  # records do not name the view that a body names
        case _:
            return [("POST", path)]


def _role(properties: Known, call: str | None) -> list[tuple[str, Path]]:
    path = (*_MANAGEMENT, "role", properties["id"])
    if call == "source-system":
        return [("PUT", (*path, call))]
    return [("DELETE", path) if call is None else ("POST", path)]


def _user(properties: Known, call: str | None) -> list[tuple[str, Path]]:
    return [("DELETE" if call is None else "PUT", (*_MANAGEMENT, "user", properties["id"]))]


def _project(properties: Known, call: str | None) -> Sequence[Call]:
    # Older paths have the id. Newer paths have no id: the header `x-project-id` has it.
    end, method = ((call,), "POST") if call == "rename" else ((), "DELETE")
    subject = project_subject(properties["id"])
    root = (*_MANAGEMENT, "project")
    return [(method, (*root, properties["id"], *end)), (method, (*root, *end), subject)]


def _grants(properties: Known, _call: str | None) -> Sequence[Call]:
    target = as_mapping(properties.get("on"))
    kind, warehouse, object_id = target.get("type"), target.get("warehouse_id"), properties.get("object_id")
    object_id = object_id.rpartition("/")[2] if isinstance(object_id, str) else None
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
                ("POST", (*tuples, "namespace", object_id, "assignments")),
                ("POST", (*_MANAGEMENT, "warehouse", warehouse, "namespace", object_id, "grants")),
            ]
        case "table" | "view" | "generic-table":
            return [
                ("POST", (*tuples, "warehouse", warehouse, kind, object_id, "assignments")),
                ("POST", (*_MANAGEMENT, "warehouse", warehouse, kind, object_id, "grants")),
            ]
        case _:
            return []


def _queue(properties: Known, _call: str | None) -> Sequence[Call]:
    queue, warehouse, project = properties.get("queue"), properties.get("warehouse_id"), properties.get("project_id")
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
    "View": _view,
    "Warehouse": _warehouse,
}
"""Rules by kind of resource."""
