"""Convert declared columns to the JSON of Iceberg schemas, with field ids. Pure functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakewright.lakekeeper.table.schema.columns import Column, Json, ListType, MapType, StructType


def field_json(column: Column, number: Callable[[], int]) -> Json:
    """Return a new field in Iceberg's JSON. `number` returns the next id."""
    field: Json = {"id": number(), "name": column.name, "required": column.required}
    field["type"] = type_json(column.type, number)
    if column.doc is not None:
        field["doc"] = column.doc
    if column.default is not None:
        value = single_value(column.default, column.type)
        field |= {"initial-default": value, "write-default": value}
    return field


def type_json(kind: Any, number: Callable[[], int]) -> Any:
    """Return a declared type in Iceberg's JSON."""
    match kind:
        case StructType():
            return {"type": "struct", "fields": [field_json(column, number) for column in kind.fields]}
        case ListType():
            list_type = {"type": "list", "element-id": number(), "element-required": kind.element_required}
            return {**list_type, "element": type_json(kind.element, number)}
        case MapType():
            map_type = {"type": "map", "key-id": number(), "value-id": number(), "value-required": kind.value_required}
            return {**map_type, "key": type_json(kind.key, number), "value": type_json(kind.value, number)}
        case _:
            return kind


def single_value(value: Any, kind: Any) -> Any:
    """Return a default value in Iceberg's JSON. The engine passes whole numbers as integers."""
    return float(value) if kind in {"float", "double"} else value
