"""Accept changes of warehouses, their namespaces and their task queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakewright_spark.policies.server_queues import QUEUES

from lakewright.drift.acceptance.edits import REMOVED, NotExpressibleError, SpecEdit, WrittenSpec
from lakewright.drift.model import Difference, DifferenceKind
from lakewright.validation.documents import items_of, mapping_of

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
        raise NotExpressibleError("the warehouse is gone: restore it, or remove it from `warehouses` by hand")
    index, _ = spec.warehouse(difference.resource)
    path = ("warehouses", index)
    name, found = difference.property, difference.found
    if name == "delete_profile":
        return _soft_deletion(path, mapping_of(found), spec)
    if name == "delete_profile.expiration_seconds":
        return _soft_deletion(path, {"type": "soft", "expiration_seconds": found}, spec)
    if field := _FIELDS.get(name):
        gone = found is None or found == {}
        if gone and spec.at(*path, field) is None:
            raise NotExpressibleError(f"the spec cannot declare that `{name}` is not set")
        return [SpecEdit((*path, field), REMOVED if gone else found)]
    raise NotExpressibleError(_REASONS.get(name) or f"the spec has no field for `{name}` of a warehouse")


def _soft_deletion(path: tuple[str, int], found: Mapping[str, Any], spec: WrittenSpec) -> list[SpecEdit]:
    field = (*path, "soft_delete_days")
    if found.get("type") != "soft":
        return [SpecEdit(field, REMOVED)] if spec.at(*field) is not None else []
    seconds = int(found["expiration_seconds"])
    days, rest = divmod(seconds, _SECONDS_PER_DAY)
    if rest or not 1 <= days <= 365:
        raise NotExpressibleError(
            f"`soft_delete_days` counts whole days from 1 to 365; the server keeps dropped tables {seconds} seconds"
        )
    return [SpecEdit(field, days)]


def accept_namespace(difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    """Return the edit for a namespace that is gone."""
    if difference.kind is not DifferenceKind.GONE:
        raise NotExpressibleError("the spec declares names of namespaces, not their properties or protection")
    for index, warehouse in items_of(spec.document, "warehouses"):
        beginning = f"{spec.tenant}-{warehouse.get('name')}-"
        name = difference.resource.removeprefix(beginning)
        if name == difference.resource:
            continue
        for path in (("warehouses", index, "namespaces"), ("warehouses", index, "namespaces", "also")):
            if name in spec.list_at(*path):
                return [SpecEdit((*path, spec.list_at(*path).index(name)), REMOVED)]
    raise NotExpressibleError("the namespace belongs to a preset, or is the parent of a declared one")


def accept_task_queue(difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    """Return the edits for settings of a task queue: in `maintenance.server`, else in the warehouse."""
    for index, warehouse in items_of(spec.document, "warehouses"):
        beginning = f"{spec.tenant}-{warehouse.get('name')}-"
        queue = difference.resource.removeprefix(beginning)
        if queue == difference.resource:
            continue
        own = ("warehouses", index, "task_queues", queue)
        if spec.at(*own) is not None:
            return _own_queue(difference, own, spec)
        side = ("maintenance", "server", str(warehouse.get("name")), queue)
        if spec.at(*side) is not None:
            return _server_queue(difference, side)
    raise NotExpressibleError("the spec does not declare this queue")


def _own_queue(difference: Difference, path: tuple[str | int, ...], spec: WrittenSpec) -> list[SpecEdit]:
    if difference.kind is DifferenceKind.GONE:
        return [SpecEdit(path, REMOVED)]
    field = (*path, difference.property)
    if difference.found is None:
        return [SpecEdit(field, REMOVED)] if spec.at(*field) is not None else []
    if difference.property == "config":
        return _mapping_edits(spec, field, mapping_of(difference.found))
    return [SpecEdit(field, difference.found)]


def _mapping_edits(spec: WrittenSpec, path: tuple[str | int, ...], wanted: Mapping[str, Any]) -> list[SpecEdit]:
    written = mapping_of(spec.at(*path))
    if not written:
        return [SpecEdit(path, dict(wanted))]
    edits = [SpecEdit((*path, key), REMOVED) for key in written if key not in wanted]
    return edits + [SpecEdit((*path, key), value) for key, value in wanted.items() if written.get(key) != value]


def _server_queue(difference: Difference, path: tuple[str, ...]) -> list[SpecEdit]:
    if difference.kind is DifferenceKind.GONE or difference.property != "config":
        raise NotExpressibleError("`maintenance.server` has settings of the queue only; declare it in `task_queues`")
    found = dict(mapping_of(difference.found))
    switch = next((queue.switch for queue in QUEUES if queue.name == path[-1]), "")
    is_on = found.pop(switch, True)
    return [SpecEdit(path, (found or True) if is_on else is_on)]
