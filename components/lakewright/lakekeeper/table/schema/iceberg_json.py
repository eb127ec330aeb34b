"""Declared columns in the JSON of Iceberg's schemas, with ids for their fields. Pure functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakewright.lakekeeper.table.schema.columns import Column, Json, ListType, MapType, StructType


def field_json(column: Column, number: Callable[[], int]) -> Json:
    """A new field in Iceberg's JSON; `number` gives ids."""
    made: Json = {"id": number(), "name": column.name, "required": column.required}
    made["type"] = type_json(column.type, number)
    if column.doc is not None:
        made["doc"] = column.doc
    if column.default is not None:
        value = single_value(column.default, column.type)
        made |= {"initial-default": value, "write-default": value}
    return made


def type_json(kind: Any, number: Callable[[], int]) -> Any:
    """A declared type in Iceberg's JSON."""
    match kind:
        case StructType():
            return {"type": "struct", "fields": [field_json(column, number) for column in kind.fields]}
        case ListType():
            made = {"type": "list", "element-id": number(), "element-required": kind.element_required}
            return {**made, "element": type_json(kind.element, number)}
        case MapType():
            made = {"type": "map", "key-id": number(), "value-id": number(), "value-required": kind.value_required}
            return {**made, "key": type_json(kind.key, number), "value": type_json(kind.value, number)}
        case _:
            return kind


def single_value(value: Any, kind: Any) -> Any:
    """A default as Iceberg's JSON has it: engines hand whole numbers over as integers."""
    return float(value) if kind in {"float", "double"} else value
