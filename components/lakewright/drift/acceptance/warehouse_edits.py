"""Accept changes of warehouses, their namespaces and their task queues."""

from __future__ import annotations

from dataclasses import replace

from lakewright_spark.policies.server_queues import QUEUES

from lakewright.drift.acceptance.edits import REMOVED, SpecEdit, WrittenSpec
from lakewright.drift.acceptance.field_edits import edit_field, edit_mapping
from lakewright.drift.model import Difference, DifferenceKind
from lakewright.field_map.marks import NotExpressibleError
from lakewright.spec.warehouse import WarehouseSpec
from lakewright.storage.live_storage import name_path_as_on_s3
from lakewright.validation.documents import as_mapping, list_items


def accept_warehouse(difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    """Return the edits for a property of a warehouse."""
    if difference.kind is DifferenceKind.GONE:
        raise NotExpressibleError("the warehouse no longer exists: restore it, or remove it from `warehouses` manually")
    index, _ = spec.warehouse(difference.resource)
    if refusal := WarehouseSpec.refused_properties.get(difference.property):
        raise NotExpressibleError(refusal)
    declared_difference = replace(difference, property=name_path_as_on_s3(difference.property))
    return edit_field(WarehouseSpec, ("warehouses", index), declared_difference, spec, title="a warehouse")


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
        return edit_mapping(spec, field, as_mapping(difference.found))
    return [SpecEdit(field, difference.found)]


def _edit_server_queue(difference: Difference, path: tuple[str, ...]) -> list[SpecEdit]:
    if difference.kind is DifferenceKind.GONE or difference.property != "config":
        raise NotExpressibleError("`maintenance.server` has settings of the queue only; declare it in `task_queues`")
    settings = dict(as_mapping(difference.found))
    switch = next((queue.switch for queue in QUEUES if queue.name == path[-1]), "")
    is_on = settings.pop(switch, True)
    return [SpecEdit(path, (settings or True) if is_on else is_on)]
