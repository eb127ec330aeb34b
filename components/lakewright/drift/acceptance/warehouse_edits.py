"""Accept changes of warehouses, their namespaces and their task queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakewright_spark.policies.server_queues import QUEUES

from lakewright.drift.acceptance.edits import REMOVED, NotExpressibleError, SpecEdit, WrittenSpec
from lakewright.drift.model import Difference, DifferenceKind
from lakewright.validation.documents import as_mapping, list_items

_SECONDS_PER_DAY = 86_400
_FIELDS = {
    "protected": "protected",
    "allowed_format_versions": "format_versions",
    "storage.sts_token_validity_seconds": "token_seconds",
    "storage.sts_session_tags": "session_tags",
}
"""Fields of the spec by the property that they set."""
_REASONS = {
    "name": "the warehouse was renamed outside the stack: rename it in the spec with `renamed_from`, or rename it back",
    "active": "the spec cannot declare an inactive warehouse: activate it, or let `up --refresh` do it",
    "credential": "a credential cannot be read back from the server",
    "credential_fingerprint": "a credential cannot be read back from the server",
}


def accept_warehouse(difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    """Return the edits for a property of a warehouse."""
    if difference.kind is DifferenceKind.GONE:
        raise NotExpressibleError("the warehouse is gone: restore it, or remove it from `warehouses` manually")
    index, _ = spec.warehouse(difference.resource)
    path = ("warehouses", index)
    name, value = difference.property, difference.found
    if name == "delete_profile":
        return _edit_soft_deletion(path, as_mapping(value), spec)
    if name == "delete_profile.expiration_seconds":
        return _edit_soft_deletion(path, {"type": "soft", "expiration_seconds": value}, spec)
    if field := _FIELDS.get(name):
        is_unset = value is None or value == {}
        if is_unset and spec.get_value(*path, field) is None:
            raise NotExpressibleError(f"the spec cannot declare that `{name}` is not set")
        return [SpecEdit((*path, field), REMOVED if is_unset else value)]
    raise NotExpressibleError(_REASONS.get(name) or f"the spec has no field for `{name}` of a warehouse")


def _edit_soft_deletion(path: tuple[str, int], profile: Mapping[str, Any], spec: WrittenSpec) -> list[SpecEdit]:
    field = (*path, "soft_delete_days")
    if profile.get("type") != "soft":
        return [SpecEdit(field, REMOVED)] if spec.get_value(*field) is not None else []
    seconds = int(profile["expiration_seconds"])
    days, remainder = divmod(seconds, _SECONDS_PER_DAY)
    if remainder or not 1 <= days <= 365:
        raise NotExpressibleError(
            f"`soft_delete_days` counts whole days from 1 to 365; the server keeps dropped tables {seconds} seconds"
        )
    return [SpecEdit(field, days)]


def accept_namespace(difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    """Return the edit for a deleted namespace."""
    if difference.kind is not DifferenceKind.GONE:
        raise NotExpressibleError("the spec declares names of namespaces, not their properties or protection")
    for index, warehouse in list_items(spec.document, "warehouses"):
        beginning = f"{spec.tenant}-{warehouse.get('name')}-"
        name = difference.resource.removeprefix(beginning)
        if name == difference.resource:
            continue
        for path in (("warehouses", index, "namespaces"), ("warehouses", index, "namespaces", "also")):
            if name in spec.get_list(*path):
                return [SpecEdit((*path, spec.get_list(*path).index(name)), REMOVED)]
    raise NotExpressibleError("the namespace belongs to a preset, or is the parent of a declared namespace")


def accept_task_queue(difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    """Return the edits for settings of a task queue: in `maintenance.server`, else in the warehouse."""
    for index, warehouse in list_items(spec.document, "warehouses"):
        beginning = f"{spec.tenant}-{warehouse.get('name')}-"
        queue = difference.resource.removeprefix(beginning)
        if queue == difference.resource:
            continue
        queue_path = ("warehouses", index, "task_queues", queue)
        if spec.get_value(*queue_path) is not None:
            return _edit_declared_queue(difference, queue_path, spec)
        server_path = ("maintenance", "server", str(warehouse.get("name")), queue)
        if spec.get_value(*server_path) is not None:
            return _edit_server_queue(difference, server_path)
    raise NotExpressibleError("the spec does not declare this queue")


def _edit_declared_queue(difference: Difference, path: tuple[str | int, ...], spec: WrittenSpec) -> list[SpecEdit]:
    if difference.kind is DifferenceKind.GONE:
        return [SpecEdit(path, REMOVED)]
    field = (*path, difference.property)
    if difference.found is None:
        return [SpecEdit(field, REMOVED)] if spec.get_value(*field) is not None else []
    if difference.property == "config":
        return _edit_mapping(spec, field, as_mapping(difference.found))
    return [SpecEdit(field, difference.found)]


def _edit_mapping(spec: WrittenSpec, path: tuple[str | int, ...], target: Mapping[str, Any]) -> list[SpecEdit]:
    written = as_mapping(spec.get_value(*path))
    if not written:
        return [SpecEdit(path, dict(target))]
    edits = [SpecEdit((*path, key), REMOVED) for key in written if key not in target]
    return edits + [SpecEdit((*path, key), value) for key, value in target.items() if written.get(key) != value]


def _edit_server_queue(difference: Difference, path: tuple[str, ...]) -> list[SpecEdit]:
    if difference.kind is DifferenceKind.GONE or difference.property != "config":
        raise NotExpressibleError("`maintenance.server` has settings of the queue only; declare it in `task_queues`")
    settings = dict(as_mapping(difference.found))
    switch = next((queue.switch for queue in QUEUES if queue.name == path[-1]), "")
    is_on = settings.pop(switch, True)
    return [SpecEdit(path, (settings or True) if is_on else is_on)]
